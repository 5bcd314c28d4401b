// Views: how the elements of a tensor lie in a buffer. A view is { id, length, shape, strides, offset }, where `id` is a
// batch's buffer of `length` elements. Moving axes, slicing and broadcasting change views; only operations that need
// their elements in order copy them.

import { sizeOf, stridesOf } from './shape.js';

/** Returns the view of all elements of a buffer in order. */
export const dense = (id, shape) => ({ id, length: sizeOf(shape), shape, strides: stridesOf(shape), offset: 0 });

/**
 * Returns a view of a view: axis `k` walks along `axes[k]` by `steps[k]`, or repeats where `axes[k]` is −1. `starts` has
 * the first index of each axis of the view below.
 */
export const viewed = ({ id, length, strides, offset }, { shape, axes, steps, starts }) => ({
    id,
    length,
    shape,
    strides: axes.map((axis, k) => (axis < 0 ? 0 : strides[axis] * steps[k])),
    offset: starts.reduce((sum, start, axis) => sum + start * strides[axis], offset),
});

/** Returns a view with its axes in another order. */
export const permuted = (view, order) => ({
    ...view,
    shape: order.map((axis) => view.shape[axis]),
    strides: order.map((axis) => view.strides[axis]),
});

/** Returns the order that undoes another. */
export const inverse = (order) => {
    const back = [];
    order.forEach((axis, k) => (back[axis] = k));
    return back;
};

/** Returns a view that repeats its elements up to a shape that it broadcasts to. */
export const repeated = (view, shape) => {
    const missing = shape.length - view.shape.length;
    const strideAt = (length, axis) => {
        const own = axis - missing;
        return own < 0 || view.shape[own] !== length ? 0 : view.strides[own];
    };
    return { ...view, shape, strides: shape.map(strideAt) };
};

/** Returns the fewest axes that walk the same way: neighbours are joined, and axes of length 1 left out. */
export const merged = ({ shape, strides }) => {
    const axes = [];
    shape.forEach((length, k) => {
        const last = axes.at(-1);
        if (length === 1) {
            return;
        }
        if (last && last.stride === length * strides[k]) {
            last.length *= length;
            last.stride = strides[k];
        } else {
            axes.push({ length, stride: strides[k] });
        }
    });
    return axes;
};

/** Whether a view has all elements of its buffer in order. */
export const isDense = (view) => {
    const axes = merged(view);
    const inOrder = axes.length === 0 || (axes.length === 1 && axes[0].stride === 1);
    return inOrder && view.offset === 0 && sizeOf(view.shape) === view.length;
};

/** Returns the order of axes in which a view is dense; undefined if there is none. */
export const denseOrder = (view) => {
    const order = view.shape.map((_, axis) => axis);
    if (isDense(view)) {
        return order;
    }
    order.sort((a, b) => view.strides[b] - view.strides[a]);
    return isDense(permuted(view, order)) ? order : undefined;
};

/** Returns a view of another shape without a copy; undefined if its elements do not lie for it. */
export const restrided = (view, shape) => {
    const axes = merged(view);
    const strides = Array(shape.length).fill(0);
    let axis = shape.length - 1;
    for (const { length, stride } of axes.reverse()) {
        let rest = length;
        while (rest > 1) {
            if (axis < 0 || rest % shape[axis] !== 0) {
                return undefined;
            }
            strides[axis] = (stride * length) / rest;
            rest /= shape[axis--];
        }
    }
    return { ...view, shape, strides };
};
