// Softmaxes, norms, matmul and convolution: from nodes to nodes.

import { elementwise, broadcasting, reduce } from './elementwise.js';
import { pad, requireIndices, reshape, zeros } from './movement.js';
import { bitsOf } from './node.js';
import { optionsOf } from './options.js';
import { record } from './record.js';
import { axisOf, broadcast, checkedShape, failure, shown, text, whole } from './shape.js';

/**
 * @import { GpuDevice } from '../device.js'
 * @import { Named } from './elementwise.js'
 * @import { Node } from './node.js'
 * @import { Shape } from './shape.js'
 * @import { Sides } from './movement.js'
 */

/**
 * @param {string} op
 * @param {Node} x
 * @param {any} [axis]
 */
export const softmax = (op, x, axis = -1) => record(op, [x], x.shape, [axisOf(op, axis, x.shape)]);

/** @param {Node} x */
const negativeMean = (x) => {
    const mean = reduce('mean', x);
    return elementwise('neg', [mean], mean.shape);
};

/**
 * The mean cross entropy of logits, whose last axis has the classes: by their indices, or by their probabilities.
 * @param {Node} x
 * @param {Node} labels
 */
export const crossEntropy = (x, labels) => {
    const rows = x.shape.slice(0, -1);
    if (x.shape.length === 0) {
        throw failure('crossEntropy', 'a scalar has no axis of classes');
    }
    if (x.size === 0) {
        throw failure('crossEntropy', `logits of shape ${text(x.shape)} have no elements`, 'EMPTY');
    }
    const logs = softmax('logSoftmax', x);
    if (text(labels.shape) === text(x.shape)) {
        const terms = broadcasting('crossEntropy', 'mul', [['labels', labels], ['this', logs]]);
        return negativeMean(reduce('sum', terms, -1));
    }
    if (text(labels.shape) !== text(rows)) {
        const needed = `${text(rows)} or ${text(x.shape)} for logits of shape ${text(x.shape)}`;
        throw failure('crossEntropy', `\`labels\` has shape ${text(labels.shape)}, but must have ${needed}`);
    }
    requireIndices('crossEntropy', 'labels', labels, x.shape[rows.length]);
    const indices = reshape(labels, [...rows, 1], 'crossEntropy');
    return negativeMean(record('take', [logs, indices], indices.shape));
};

/**
 * Normalises along an axis; `vectors` are named, and have its length.
 * @param {string} op
 * @param {Node} x
 * @param {Named[]} vectors
 * @param {any} options
 */
export const norm = (op, x, vectors, options) => {
    const { axis: given = -1, epsilon = 1e-5 } = optionsOf(op, options, ['axis', 'epsilon']);
    const axis = axisOf(op, given, x.shape);
    for (const [name, { shape }] of vectors) {
        if (shape.length !== 1 || shape[0] !== x.shape[axis]) {
            const needed = text([x.shape[axis]]);
            throw failure(op, `\`${name}\` has shape ${text(shape)}, but must have ${needed} for shape ${text(x.shape)}`);
        }
    }
    // A GPU may round what is smaller to zero.
    if (typeof epsilon !== 'number' || !(epsilon >= 1.2e-38 && epsilon <= 3.4e38)) {
        throw failure(op, `\`epsilon\` is ${shown(epsilon)}, but must be a finite number of at least 1.2e-38`, 'INVALID_ARGUMENT');
    }
    return record(op, [x, ...vectors.map(([, node]) => node)], x.shape, [axis, ...bitsOf([epsilon])]);
};

/**
 * Returns the shape of a product of operands with at least two axes.
 * @param {Shape} a
 * @param {Shape} b
 */
const productShape = (a, b) => {
    const lead = broadcast('matmul', [['a', a.slice(0, -2)], ['b', b.slice(0, -2)]]);
    return checkedShape('matmul', [...lead, a.at(-2), b.at(-1)]);
};

/**
 * @param {Node} a
 * @param {Node} b
 */
export const matmul = (a, b) => {
    /** @type {Named[]} */
    const named = [['a', a], ['b', b]];
    const scalar = named.find(([, { shape }]) => shape.length === 0);
    if (scalar) {
        throw failure('matmul', `\`${scalar[0]}\` is a scalar, but must have an axis; use mul`);
    }
    const rows = b.shape.at(-2) ?? b.shape[0];
    if (a.shape.at(-1) !== rows) {
        const needed = `but must have ${a.shape.at(-1)} rows for shape ${text(a.shape)} of \`a\``;
        throw failure('matmul', `\`b\` has shape ${text(b.shape)}, ${needed}`);
    }
    const left = a.shape.length === 1 ? reshape(a, [1, ...a.shape]) : a;
    const right = b.shape.length === 1 ? reshape(b, [...b.shape, 1]) : b;
    const shape = productShape(left.shape, right.shape);
    const result = rows === 0 ? zeros(a.device, shape) : record('matmul', [left, right], shape);
    const kept = shape.filter((_, axis) =>
        !(a.shape.length === 1 && axis === shape.length - 2) && !(b.shape.length === 1 && axis === shape.length - 1));
    return kept.length === shape.length ? result : reshape(result, kept);
};

/** The largest number that the module takes. */
const MOST = 2 ** 32 - 1;

/** The largest number of rows or columns of a dilated kernel that the module takes. */
const MOST_WINDOW = 2 ** 30;

/**
 * Returns an option that is a number, or one for rows and one for columns.
 * @param {string} name
 * @param {any} value
 * @param {number} least
 * @returns {number[]}
 */
const pair = (name, value, least) => {
    const list = Array.isArray(value) ? value : [value, value];
    if (list.length !== 2) {
        throw failure('conv2d', `\`${name}\` is ${shown(value)}, but must be a number or two`, 'INVALID_ARGUMENT');
    }
    return list.map((one) => {
        if (whole('conv2d', name, one, least) > MOST) {
            throw failure('conv2d', `\`${name}\` is ${one}, but must be at most ${MOST}`, 'INVALID_ARGUMENT');
        }
        return one;
    });
};

const MODES = ['zeros', 'edge', 'reflect'];

/**
 * Returns the elements before and after an axis with which a result has `length / stride` elements, rounded up.
 * @param {number} length
 * @param {number} window
 * @param {number} stride
 * @returns {Sides}
 */
const sameSides = (length, window, stride) => {
    const last = Math.floor((length - 1) / stride) * stride;
    const total = Math.max(0, last + window - length);
    return [total >> 1, total - (total >> 1)];
};

/**
 * @param {string} name
 * @param {any} value
 * @returns {Sides[]}
 */
const bothSides = (name, value) => pair(name, value, 0).map((side) => [side, side]);

/**
 * Returns the elements before and after rows and columns, and the mode that they have. `same` are those of 'same'.
 * @param {any} padding
 * @param {Sides[]} same
 * @returns {{ mode: string, sides: Sides[] }}
 */
const paddingOf = (padding, same) => {
    if (padding === 'same' || padding === 'valid') {
        return { mode: 'zeros', sides: padding === 'same' ? same : [[0, 0], [0, 0]] };
    }
    if (typeof padding === 'number' || Array.isArray(padding)) {
        return { mode: 'zeros', sides: bothSides('padding', padding) };
    }
    const { mode, size } = Object(padding);
    if (!MODES.includes(mode)) {
        const needed = "a number, two numbers, 'same', 'valid' or { mode: 'zeros', 'edge' or 'reflect', size }";
        throw failure('conv2d', `\`padding\` is ${shown(padding)}, but must be ${needed}`, 'INVALID_ARGUMENT');
    }
    optionsOf('conv2d: `padding`', padding, ['mode', 'size']);
    return { mode, sides: size === undefined ? same : bothSides('padding.size', size) };
};

/**
 * Checks ranks, channels and groups.
 * @param {Node} x
 * @param {Node} weights
 * @param {number} groups
 */
const checkLayer = (x, weights, groups) => {
    if (![3, 4].includes(x.shape.length) || weights.shape.length !== 4) {
        const needed = 'must be [images, channels, rows, columns] and [filters, channels / groups, rows, columns]';
        throw failure('conv2d', `shapes ${text(x.shape)} and ${text(weights.shape)} of \`weights\` ${needed}`);
    }
    const [filters, depth] = weights.shape;
    const channels = x.shape.at(-3);
    if (channels !== depth * groups || filters % groups !== 0) {
        const group = groups === 1 ? '' : ` in ${groups} groups`;
        throw failure('conv2d', `\`weights\` has shape ${text(weights.shape)}, which does not fit the ${channels} channels${group} of ${text(x.shape)}`);
    }
    const empty = [x.shape.slice(-2), weights.shape].find((shape) => shape.includes(0));
    if (empty) {
        throw failure('conv2d', `images or weights of ${text(empty)} have no elements`, 'EMPTY');
    }
};

const LAYER_OPTIONS = ['stride', 'padding', 'dilation', 'groups'];

/**
 * @param {Node} x
 * @param {Node} weights
 * @param {any} options
 */
export const conv2d = (x, weights, options) => {
    const { stride = 1, padding = 0, dilation = 1, groups = 1 } = optionsOf('conv2d', options, LAYER_OPTIONS);
    checkLayer(x, weights, whole('conv2d', 'groups', groups, 1));
    const [strides, dilations] = [pair('stride', stride, 1), pair('dilation', dilation, 1)];
    const kernel = weights.shape.slice(2);
    const windows = kernel.map((length, k) => (length - 1) * dilations[k] + 1);
    if (windows.some((window) => window > MOST_WINDOW)) {
        const most = `but at most ${MOST_WINDOW} are possible`;
        throw failure('conv2d', `a dilated kernel has ${text(windows)} rows and columns, ${most}`, 'LIMIT_EXCEEDED');
    }
    const same = windows.map((window, k) => sameSides(x.shape[x.shape.length + k - 2], window, strides[k]));
    const { mode, sides } = paddingOf(padding, same);
    const isSame = mode === 'zeros' && text(sides.flat()) === text(same.flat());
    const images = x.shape.length === 4 ? x : reshape(x, [1, ...x.shape], 'conv2d');
    const padded = isSame ? images : sides.reduce((one, side, k) => pad('conv2d', one, k + 2, side, mode), images);
    return layer(x, padded, weights, { strides, dilations, windows, groups, isSame });
};

/**
 * Records the convolution of images that are padded, unless their padding is that of `isSame`.
 * @param {Node} x
 * @param {Node} images
 * @param {Node} weights
 * @param {{ strides: number[], dilations: number[], windows: number[], groups: number, isSame: boolean }} options
 */
const layer = (x, images, weights, { strides, dilations, windows, groups, isSame }) => {
    const [batch, , ...input] = images.shape;
    const sizes = input.map((length, k) => Math.floor((length - (isSame ? 1 : windows[k])) / strides[k]) + 1);
    if (sizes.some((size) => size < 1)) {
        throw failure('conv2d', `a kernel of ${text(windows)} elements does not fit into images of ${text(input)}`);
    }
    const parameters = [...strides, isSame ? 1 : 0, ...dilations, groups];
    const result = record('conv2d', [images, weights], [batch, weights.shape[0], ...sizes], parameters);
    return x.shape.length === 4 ? result : reshape(result, result.shape.slice(1), 'conv2d');
};
