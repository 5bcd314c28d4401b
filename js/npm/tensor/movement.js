// Operations that move elements: from nodes to nodes.

import { common } from './dtype.js';
import { FOLDS, elementwise } from './elementwise.js';
import { record, constant, range } from './record.js';
import {
    axesOf, axisOf, checkedShape, failure, listOf, pairBroadcast, rangeOf, reshaped, shown, sizeOf, text, whole,
} from './shape.js';

/**
 * @import { GpuDevice } from '../device.js'
 * @import { Node } from './node.js'
 * @import { Shape } from './shape.js'
 * @typedef {[before: number, after: number]} Sides the numbers of elements that are added to an axis
 */

/**
 * Records a view: axis `k` walks along `axes[k]` of `x` by `steps[k]`, or repeats elements where `axes[k]` is −1. `starts` has
 * the first index of each axis of `x`.
 * @param {Node} x
 * @param {Shape} shape
 * @param {number[]} axes
 * @param {{ steps?: number[], starts?: number[] }} [options]
 */
const view = (x, shape, axes, { steps = axes.map(() => 1), starts = x.shape.map(() => 0) } = {}) =>
    record('view', [x], shape, [...axes, ...steps, ...starts], x.dtype);

/**
 * @param {Node} x
 * @param {any} axes
 */
export const permute = (x, axes, op = 'permute') => {
    const order = listOf(op, 'axes', axes).map((axis) => axisOf(op, axis, x.shape, 'axes'));
    if (order.length !== x.shape.length || new Set(order).size !== order.length) {
        throw failure(op, `\`axes\` is ${text(axes)}, but must have each axis of shape ${text(x.shape)} once`, 'INVALID_ARGUMENT');
    }
    return view(x, order.map((axis) => x.shape[axis]), order);
};

/**
 * @param {Node} x
 * @param {any} [first]
 * @param {any} [second]
 */
export const transpose = (x, first = -2, second = -1) => {
    if (x.shape.length < 2) {
        throw failure('transpose', `shape ${text(x.shape)} has no two axes to swap`);
    }
    const [a, b] = [first, second].map((axis) => axisOf('transpose', axis, x.shape));
    const order = x.shape.map((_, axis) => (axis === a ? b : axis === b ? a : axis));
    return view(x, order.map((axis) => x.shape[axis]), order);
};

/**
 * @param {Node} x
 * @param {any} shape
 */
export const reshape = (x, shape, op = 'reshape') => {
    const target = reshaped(op, x.shape, shape);
    return record('reshape', [x], target, undefined, x.dtype);
};

/** @param {Node} x */
export const flatten = (x) => reshape(x, [x.size], 'flatten');

/**
 * @param {Node} x
 * @param {any} axes
 */
export const squeeze = (x, axes) => {
    const ones = x.shape.map((_, axis) => axis).filter((axis) => x.shape[axis] === 1);
    const gone = axes === undefined ? ones : axesOf('squeeze', axes, x.shape);
    const long = gone.find((axis) => x.shape[axis] !== 1);
    if (long !== undefined) {
        throw failure('squeeze', `axis ${long} has ${x.shape[long]} elements in shape ${text(x.shape)}, but must have 1`);
    }
    return reshape(x, x.shape.filter((_, axis) => !gone.includes(axis)), 'squeeze');
};

/**
 * @param {Node} x
 * @param {any} axis
 */
export const unsqueeze = (x, axis) => {
    // The new axis counts among those of the result.
    const at = axisOf('unsqueeze', axis, [...x.shape, 1]);
    return reshape(x, [...x.shape.slice(0, at), 1, ...x.shape.slice(at)], 'unsqueeze');
};

/**
 * @param {Node} x
 * @param {any} target
 */
export const broadcastTo = (x, target, op = 'broadcastTo') => {
    const shape = checkedShape(op, target);
    const both = pairBroadcast(shape, x.shape);
    if (!both || text(both) !== text(shape)) {
        throw failure(op, `shape ${text(x.shape)} does not broadcast to ${text(shape)}`);
    }
    const missing = shape.length - x.shape.length;
    const axes = shape.map((length, axis) => (x.shape[axis - missing] === length ? axis - missing : -1));
    return view(x, shape, axes);
};

/**
 * Returns the indices that one range of a slice selects. A number selects one index and removes the axis.
 * @param {Node} x
 * @param {any} given
 * @param {number} axis
 * @returns {{ start: number, step?: number, length?: number, isIndex?: boolean }}
 */
const taken = (x, given, axis) => {
    const length = x.shape[axis];
    if (typeof given === 'number') {
        if (!Number.isInteger(given) || given < -length || given >= length) {
            throw failure('slice', `index ${given} is not on axis ${axis}, which has ${length} elements`, 'INVALID_ARGUMENT');
        }
        return { start: given < 0 ? given + length : given, isIndex: true };
    }
    if (given !== null && given !== undefined && !Array.isArray(given)) {
        throw failure('slice', `range ${axis} is ${shown(given)}, but must be a number, an array [start, end, step] or null`, 'INVALID_ARGUMENT');
    }
    return rangeOf('slice', given, axis, length);
};

/**
 * @param {Node} x
 * @param {any} ranges
 */
export const slice = (x, ranges) => {
    if (!Array.isArray(ranges)) {
        throw failure('slice', `\`ranges\` is ${shown(ranges)}, but must be an array`, 'INVALID_ARGUMENT');
    }
    if (ranges.length > x.shape.length) {
        throw failure('slice', `there are ${ranges.length} ranges for the ${x.shape.length} axes of shape ${text(x.shape)}`);
    }
    const all = x.shape.map((_, axis) => ({ axis, ...taken(x, ranges[axis], axis) }));
    const rest = all.filter(({ isIndex }) => !isIndex);
    const starts = all.map(({ start }) => start);
    const axes = rest.map(({ axis }) => axis);
    return view(x, rest.map(({ length = 1 }) => length), axes, { steps: rest.map(({ step = 1 }) => step), starts });
};

/**
 * Joins nodes along an axis from 0 on; all other lengths must be equal.
 * @param {string} op
 * @param {Node[]} parts
 * @param {any} at
 */
export const concat = (op, parts, at) => {
    const [first] = parts;
    const axis = axisOf(op, at, first.shape);
    const sameBeside = (/** @type {Node} */ { shape }) =>
        shape.length === first.shape.length && shape.every((length, k) => k === axis || length === first.shape[k]);
    const other = parts.findIndex((part) => !sameBeside(part));
    if (other >= 0) {
        const has = `tensor ${other} has shape ${text(parts[other].shape)}`;
        throw failure(op, `${has}, which must equal ${text(first.shape)} except along axis ${axis}`);
    }
    const total = parts.reduce((sum, { shape }) => sum + shape[axis], 0);
    const shape = checkedShape(op, first.shape.map((length, k) => (k === axis ? total : length)));
    const full = parts.filter(({ size }) => size > 0);
    return record('concat', full.length > 0 ? full : [first], shape, [axis], common(parts));
};

/**
 * @param {Node[]} parts
 * @param {any} at
 */
export const stack = (parts, at) => {
    const [first] = parts;
    const axis = axisOf('stack', at, [...first.shape, 1]);
    const other = parts.find(({ shape }) => text(shape) !== text(first.shape));
    if (other) {
        throw failure('stack', `a tensor has shape ${text(other.shape)}, but the first one has ${text(first.shape)}`);
    }
    const wide = [...first.shape.slice(0, axis), 1, ...first.shape.slice(axis)];
    return concat('stack', parts.map((part) => reshape(part, wide, 'stack')), axis);
};

/**
 * Returns the node that a node has the elements of, in another shape.
 * @param {Node} node
 */
export const unshaped = (node) => {
    let found = node;
    while (found.op === 'reshape') {
        [found] = found.inputs;
    }
    return found;
};

/**
 * Refuses indices that are none below `count`, where the host has them. Returns whether it has.
 * @param {string} op
 * @param {string} what
 * @param {Node} node
 * @param {number} count
 */
export const requireIndices = (op, what, node, count) => {
    const { source } = unshaped(node);
    const isWrong = (/** @type {number} */ index) => !Number.isInteger(index) || index < 0 || index >= count;
    if (!(source instanceof Float32Array)) {
        return false;
    }
    if (source.some(isWrong)) {
        const needed = `whole numbers from 0 to ${count - 1}`;
        throw failure(op, `\`${what}\` has ${source.find(isWrong)}, but must have ${needed}`, 'INVALID_ARGUMENT');
    }
    return true;
};

/**
 * Whether a node computes nothing but indices below `count`.
 * @param {Node} node
 * @param {number} count
 */
const areIndices = (node, count) => {
    const { op, inputs: [x], parameters: [fold, , ...axes] } = unshaped(node);
    /** @type {Record<string, () => number>} */
    const most = {
        topK: () => x.shape[x.shape.length - 1],
        reduce: () => (FOLDS[fold].startsWith('arg') ? sizeOf(axes.map((axis) => x.shape[axis])) : Infinity),
    };
    return (most[op]?.() ?? Infinity) <= count;
};

/**
 * Returns 0 where elements are indices below `count`, and NaN elsewhere.
 * @param {Node} x
 * @param {number} count
 */
const zeroOrNan = (x, count) => {
    const of = (/** @type {string} */ op, /** @type {Node[]} */ inputs, /** @type {number[]} */ values = []) =>
        elementwise(op, inputs, x.shape, { values });
    const nearest = of('floor', [of('clip', [x], [0, count - 1])]);
    // The square root of −1 is NaN.
    return of('sqrt', [of('sub', [of('equal', [nearest, x]), constant(x.device, 1)])]);
};

/**
 * @param {Node} x
 * @param {Node} indices
 * @param {any} at
 */
export const gather = (x, indices, at) => {
    const axis = axisOf('gather', at, x.shape);
    const shape = checkedShape('gather', [...x.shape.slice(0, axis), ...indices.shape, ...x.shape.slice(axis + 1)]);
    if (x.shape[axis] === 0 && indices.size > 0) {
        throw failure('gather', `axis ${axis} of shape ${text(x.shape)} has no elements`, 'EMPTY');
    }
    requireIndices('gather', 'indices', indices, x.shape[axis]);
    return record('gather', [x, indices], shape, [axis]);
};

/**
 * @param {Node} x
 * @param {any} classes
 */
export const oneHot = (x, classes) => {
    whole('oneHot', 'classes', classes, 1);
    const shape = checkedShape('oneHot', [...x.shape, classes]);
    const wide = reshape(x, [...x.shape, 1], 'oneHot');
    const isAt = elementwise('equal', [wide, range(x.device, classes)], shape);
    const isKnown = requireIndices('oneHot', 'this', x, classes) || areIndices(x, classes);
    return isKnown ? isAt : elementwise('vecAdd', [isAt, zeroOrNan(wide, classes)], shape);
};

/** The largest number of elements whose indices an f32 can represent. */
const MOST_INDICES = 2 ** 24;

/**
 * @param {Node} x
 * @param {any} k
 */
export const topK = (x, k) => {
    whole('topK', 'k', k, 1);
    const cols = x.shape.at(-1);
    if (cols === undefined || k > cols) {
        const has = `the last axis of shape ${text(x.shape)} has ${cols ?? 'no'} elements`;
        throw failure('topK', `\`k\` is ${k}, but ${has}`, 'INVALID_ARGUMENT');
    }
    if (cols > MOST_INDICES) {
        const most = `but at most ${MOST_INDICES} have indices in f32`;
        throw failure('topK', `the last axis of shape ${text(x.shape)} has ${cols} elements, ${most}`, 'LIMIT_EXCEEDED');
    }
    const shape = [...x.shape.slice(0, -1), k];
    const indices = record('topK', [x], shape, [k], 'u32');
    return { values: record('take', [x, indices], shape), indices };
};

/**
 * Returns `count` elements before or after those of an axis, by a mode of padding.
 * @param {Node} x
 * @param {number} axis
 * @param {number} count
 * @param {string} mode
 * @param {boolean} isAfter
 */
const border = (x, axis, count, mode, isAfter) => {
    const length = x.shape[axis];
    const shape = x.shape.map((own, k) => (k === axis ? count : own));
    if (mode === 'zeros') {
        return broadcastTo(constant(x.device, 0), shape);
    }
    const axes = x.shape.map((_, k) => (k === axis && mode === 'edge' ? -1 : k));
    const steps = axes.map((_, k) => (k === axis ? -1 : 1));
    const edge = isAfter ? length - 1 : 0;
    const mirrored = isAfter ? length - 2 : count;
    const starts = x.shape.map((_, k) => (k === axis ? (mode === 'edge' ? edge : mirrored) : 0));
    return view(x, shape, axes, { steps, starts });
};

/**
 * Pads one axis; `mode` is 'zeros', 'edge' or 'reflect'.
 * @param {string} op
 * @param {Node} x
 * @param {number} axis
 * @param {Sides} sides
 * @param {string} mode
 */
export const pad = (op, x, axis, [before, after], mode) => {
    if (mode === 'reflect' && Math.max(before, after) >= x.shape[axis]) {
        const most = `at most ${x.shape[axis] - 1} for axis ${axis} of shape ${text(x.shape)}`;
        throw failure(op, `\`padding\` is ${Math.max(before, after)} by reflection, but must be ${most}`, 'INVALID_ARGUMENT');
    }
    const first = before > 0 ? [border(x, axis, before, mode, false)] : [];
    const last = after > 0 ? [border(x, axis, after, mode, true)] : [];
    const joined = [...first, x, ...last];
    return joined.length > 1 ? concat(op, joined, axis) : x;
};

/**
 * Returns a tensor of zeros, as part of the structure.
 * @param {GpuDevice} device
 * @param {Shape} shape
 */
export const zeros = (device, shape) => broadcastTo(constant(device, 0), shape);
