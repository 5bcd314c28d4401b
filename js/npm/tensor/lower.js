// From recorded nodes to a batch's operations. Each node becomes a view of a buffer; moving axes costs nothing until an
// operation needs its elements in order.

import { reduced, sizeOf } from './shape.js';
import {
    dense, denseOrder, inverse, isDense, merged, permuted, repeated, restrided, viewed,
} from './view.js';

/** Records the operations of one batch, and what they share. */
class Recording {
    #batch;
    /** Copies and constants, which several operations may need. */
    #shared = new Map();

    constructor(batch) {
        this.#batch = batch;
    }

    /** Records an operation; returns the view of its result of this shape. */
    call(name, shape, ...values) {
        return dense(this.#batch[name](...values), shape);
    }

    placeholder(shape) {
        return dense(this.#batch.placeholder(sizeOf(shape)), shape);
    }

    constant(values) {
        const id = this.#once(`constant ${values}`, () => this.#batch.upload(Float32Array.from(values)));
        return dense(id, [values.length]);
    }

    /** Returns a buffer with the elements of a view in order. */
    inOrder(view) {
        if (isDense(view)) {
            return view.id;
        }
        const axes = merged(view);
        const [shape, strides] = axes.length === 0
            ? [[1], [1]]
            : [axes.map(({ length }) => length), axes.map(({ stride }) => stride)];
        const options = { shape, strides, offset: view.offset };
        return this.#once(`${view.id} ${JSON.stringify(options)}`, () => this.#batch.rearrange(view.id, options));
    }

    #once(key, make) {
        if (!this.#shared.has(key)) {
            this.#shared.set(key, make());
        }
        return this.#shared.get(key);
    }
}

/**
 * Returns the axes that an elementwise operation walks, in order: without those along which all operands repeat, and
 * in the order in which the first operand that repeats nowhere lies in memory.
 */
const walked = (views, shape) => {
    const whole = views.map((view) => (view.length === sizeOf(shape) ? denseOrder(view) : undefined));
    const natural = shape.map((_, axis) => axis);
    const order = views.some(isDense) ? natural : whole.find(Boolean) ?? natural;
    return order.filter((axis) => shape[axis] > 1 && views.some(({ strides }) => strides[axis] !== 0));
};

const elementwise = (recording, { op, shape, parameters }, inputs) => {
    const views = inputs.map((view) => repeated(view, shape));
    const axes = walked(views, shape);
    const ids = views.map((view) => recording.inOrder(permuted(view, axes)));
    const result = recording.call(op, axes.map((axis) => shape[axis]), ...ids, ...(parameters.values ?? []));
    const strides = shape.map((_, axis) => result.strides[axes.indexOf(axis)] ?? 0);
    return { ...result, shape, strides };
};

/** Returns the view with `axis` as its last axis, and the order that undoes that. */
const withLast = (view, axis) => {
    const order = view.shape.map((_, k) => k).filter((k) => k !== axis);
    order.push(axis);
    return [permuted(view, order), inverse(order)];
};

/** An operation of rows, along one axis. */
const alongAxis = (name, parametersOf) => (recording, { parameters }, [x, ...others]) => {
    const [view, back] = withLast(x, parameters.axis);
    const cols = view.shape.at(-1);
    const ids = [view, ...others].map((one) => recording.inOrder(one));
    const rows = sizeOf(view.shape) / cols;
    return permuted(recording.call(name, view.shape, ...ids, rows, cols, ...parametersOf(parameters)), back);
};

/** Reductions of a whole buffer that have an operation of their own. */
const WHOLE = ['sum', 'mean', 'max', 'min', 'argmax'];

const reduceMiddle = (recording, kind, id, [outer, len, inner]) =>
    outer * inner === 1 && WHOLE.includes(kind)
        ? recording.call(kind, [1], id)
        : recording.call('reduceAxis', [outer * inner], id, { fold: kind, outer, len, inner });

/** Reduces the axes of a buffer, from the last ones on: neighbours in one operation. */
const reduceAll = (recording, kind, start, axes) => {
    let id = start;
    const left = axes.filter(({ length }) => length > 1);
    for (let end = left.length; end > 0; end--) {
        if (left[end - 1].isReduced) {
            let first = end - 1;
            while (first > 0 && left[first - 1].isReduced) {
                first--;
            }
            const size = (from, to) => left.slice(from, to).reduce((product, { length }) => product * length, 1);
            ({ id } = reduceMiddle(recording, kind, id, [size(0, first), size(first, end), size(end)]));
            left.splice(first, end - first);
            end = first + 1;
        }
    }
    return id;
};

const reduce = (recording, { parameters: { kind, axes, keepDims } }, [x]) => {
    // Which index comes first matters where several axes become one.
    const order = (!kind.startsWith('arg') && denseOrder(x)) || x.shape.map((_, axis) => axis);
    const described = order.map((axis) => ({ axis, length: x.shape[axis], isReduced: axes.includes(axis) }));
    if (kind.startsWith('arg') && axes.every((axis) => x.shape[axis] === 1)) {
        return repeated(recording.constant([0]), reduced(x.shape, axes, keepDims));
    }
    const id = reduceAll(recording, kind, recording.inOrder(permuted(x, order)), described);
    const rest = described.filter(({ isReduced }) => !isReduced);
    const result = dense(id, rest.map(({ length }) => length));
    const places = rest.map(({ axis }) => axis);
    const natural = permuted(result, [...places.keys()].sort((a, b) => places[a] - places[b]));
    return keepDims ? restrided(natural, reduced(x.shape, axes, true)) : natural;
};

const reshape = (recording, { shape }, [x]) => restrided(x, shape) ?? dense(recording.inOrder(x), shape);

/** Joins two tensors along an axis: the rows of two matrices. */
const joinPair = (recording, axis) => (a, b) => {
    const rows = sizeOf(a.shape.slice(0, axis));
    const inner = sizeOf(a.shape.slice(axis + 1));
    const shape = a.shape.map((length, k) => (k === axis ? length + b.shape[axis] : length));
    const [aCols, bCols] = [a, b].map((one) => one.shape[axis] * inner);
    return recording.call('concatRows', shape, recording.inOrder(a), recording.inOrder(b), rows, aCols, bCols);
};

/** Joins all tensors pairwise, so that each element is copied as often as the number of tensors has binary digits. */
const concat = (recording, { parameters: { axis } }, inputs) => {
    let views = inputs;
    const join = joinPair(recording, axis);
    while (views.length > 1) {
        const pairs = [];
        for (let at = 0; at < views.length; at += 2) {
            pairs.push(at + 1 < views.length ? join(views[at], views[at + 1]) : views[at]);
        }
        views = pairs;
    }
    return views[0];
};

/** Returns a matrix as matmul takes it: its buffer, and whether it is stored transposed. */
const matrix = (recording, view) => {
    const turned = permuted(view, [1, 0]);
    return !isDense(view) && isDense(turned) ? [view.id, true] : [recording.inOrder(view), false];
};

const product = (recording, a, b, [m, k, n]) => {
    if (m * n === 1) {
        return recording.call('dot', [1, 1], recording.inOrder(a), recording.inOrder(b));
    }
    const [[aId, transposeA], [bId, transposeB]] = [matrix(recording, a), matrix(recording, b)];
    return transposeA || transposeB
        ? recording.call('matmulWith', [m, n], aId, bId, { m, k, n, transposeA, transposeB })
        : recording.call('matmul', [m, n], aId, bId, m, k, n);
};

/**
 * Multiplies stacks of matrices as a convolution of one pixel: a group, or an image where `a` is one matrix, for each.
 * Its weights are `a`, and the columns of `b` its pixels.
 */
const products = (recording, a, b, lead, [m, k, n]) => {
    const count = sizeOf(lead);
    const isShared = sizeOf(a.shape.slice(0, -2)) === 1;
    const [batch, groups] = isShared ? [count, 1] : [1, count];
    const weights = isShared ? a : repeated(a, [...lead, m, k]);
    const pixels = repeated(b, [...lead, k, n]);
    const options = {
        batch, groups, channels: groups * k, filters: groups * m, inputRows: 1, inputCols: n, kernelRows: 1, kernelCols: 1,
    };
    const ids = [pixels, weights].map((view) => recording.inOrder(view));
    return recording.call('convolveLayer', [...lead, m, n], ...ids, options);
};

/** Matmul of operands with at least two axes. */
const matmul = (recording, { shape }, [a, b]) => {
    const [[m, k], n] = [a.shape.slice(-2), b.shape.at(-1)];
    const lead = shape.slice(0, -2);
    const [aCount, bCount] = [a, b].map((one) => sizeOf(one.shape.slice(0, -2)));
    const flat = (view, rows, cols) => reshape(recording, { shape: [rows, cols] }, [view]);
    if (bCount === 1) {
        const result = product(recording, flat(a, aCount * m, k), flat(b, k, n), [aCount * m, k, n]);
        return dense(result.id, shape);
    }
    return products(recording, a, b, lead, [m, k, n]);
};

const gather = (recording, { shape, parameters: { axis } }, [x, indices]) => {
    const order = x.shape.map((_, k) => k).filter((k) => k !== axis);
    const view = permuted(x, [axis, ...order]);
    const [rows, ...rest] = view.shape;
    const [table, chosen] = [view, indices].map((one) => recording.inOrder(one));
    const found = recording.call('gatherRows', [...indices.shape, ...rest], table, chosen, rows, sizeOf(rest));
    const moved = found.shape.map((_, k) => k).filter((k) => k < indices.shape.length);
    const kept = rest.map((_, k) => k + indices.shape.length);
    const result = permuted(found, [...kept.slice(0, axis), ...moved, ...kept.slice(axis)]);
    return { ...result, shape };
};

const topK = (recording, { shape, parameters: { k } }, [x]) => {
    const cols = x.shape.at(-1);
    return recording.call('topKRows', shape, recording.inOrder(x), sizeOf(x.shape) / cols, cols, k);
};

const take = (recording, { shape }, [x, indices]) => {
    const cols = x.shape.at(-1);
    const ids = [x, indices].map((view) => recording.inOrder(view));
    return recording.call('takeAlongRows', shape, ...ids, sizeOf(x.shape) / cols, cols, shape.at(-1));
};

const conv2d = (recording, { shape, parameters: { options } }, [x, weights]) =>
    recording.call('convolveLayer', shape, recording.inOrder(x), recording.inOrder(weights), options);

/** Converts the numbers of words, which lie `stride` apart. */
const bytes = (recording, { op, shape, parameters: { stride } }, [x]) =>
    recording.call(op, shape, recording.inOrder(x), stride);

const range = (recording, { shape }) => recording.constant(Array.from({ length: shape[0] }, (_, k) => k));

const constant = (recording, { parameters: { value } }) => ({ ...recording.constant([value]), shape: [], strides: [] });

const withEpsilon = ({ epsilon }) => [epsilon];

/** How each node that is no elementwise operation becomes a view. */
const RULES = {
    leaf: (recording, { shape }) => recording.placeholder(shape),
    view: (_, { parameters }, [x]) => viewed(x, parameters),
    softmax: alongAxis('softmaxRows', () => []),
    logSoftmax: alongAxis('logSoftmaxRows', () => []),
    layerNorm: alongAxis('layerNorm', withEpsilon),
    rmsNorm: alongAxis('rmsNorm', withEpsilon),
    unpackBytes: bytes,
    packBytes: bytes,
    constant, range, reduce, reshape, concat, matmul, gather, topK, take, conv2d,
};

/**
 * Records nodes, each of which follows its inputs, in a batch. Returns where each result is found: `{ leaf }`, the
 * place of a placeholder, or `{ id }`, a buffer of the batch.
 */
export const lower = (batch, order, results) => {
    const recording = new Recording(batch);
    const views = new Map();
    for (const node of order) {
        const rule = RULES[node.op] ?? elementwise;
        views.set(node, rule(recording, node, node.inputs.map((input) => views.get(input))));
    }
    const leaves = order.filter((node) => node.isLeaf).map((node) => views.get(node).id);
    return results.map((node) => {
        const id = recording.inOrder(views.get(node));
        const leaf = leaves.indexOf(id);
        return leaf < 0 ? { id } : { leaf };
    });
};
