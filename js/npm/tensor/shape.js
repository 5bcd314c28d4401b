// Shapes: lists of whole numbers, the last axis varying fastest. Nothing here knows of tensors or devices.

import { RelampagoError } from '../../common/error.js';
import { shown as shownAlone } from '../../common/options.js';

/** @typedef {number[]} Shape */

/** The largest number of axes of a tensor; `rearrange` takes as many. */
export const MAX_RANK = 6;

/** The largest number of elements of a tensor: a module addresses 2 GB of an array. */
const MAX_SIZE = 2 ** 29 - 1;

/** @param {readonly number[]} shape */
export const sizeOf = (shape) => shape.reduce((size, length) => size * length, 1);

/**
 * Writes a shape, or any list, as errors show it.
 * @param {readonly unknown[]} shape
 */
export const text = (shape) => `[${shape.join(', ')}]`;

/**
 * Returns an error that names the operation.
 * @param {string} op
 * @param {string} message
 */
export const failure = (op, message, code = 'SHAPE_MISMATCH') => new RelampagoError(code, `${op}: ${message}`);

/**
 * Writes any value as errors show it, a list by its elements.
 * @param {any} value
 */
export const shown = (value) => (Array.isArray(value) ? text(value.map(shownIn)) : shownAlone(value));

/**
 * Writes an element of a list, of which symbols, for example, have no text of their own.
 * @param {any} value
 */
const shownIn = (value) => (typeof value === 'number' ? value : shownAlone(value));

/**
 * Returns an argument that must be a whole number from `least` on.
 * @param {string} op
 * @param {string} what
 * @param {any} value
 * @returns {number}
 */
export const whole = (op, what, value, least = 0) => {
    if (!Number.isSafeInteger(value) || value < least) {
        throw failure(op, `\`${what}\` is ${shown(value)}, but must be a whole number from ${least}`, 'INVALID_ARGUMENT');
    }
    return value;
};

/**
 * Returns a copy of an argument that must be a list of numbers.
 * @param {string} op
 * @param {string} what
 * @param {any} value
 * @returns {number[]}
 */
export const listOf = (op, what, value) => {
    if (!Array.isArray(value)) {
        throw failure(op, `\`${what}\` is ${shown(value)}, but must be an array of numbers`, 'INVALID_ARGUMENT');
    }
    return [...value];
};

/**
 * Returns a copy of a shape that is short and small enough.
 * @param {string} op
 * @param {any} value
 */
export const checkedShape = (op, value) => {
    const shape = listOf(op, 'shape', value);
    shape.forEach((length, axis) => whole(op, `shape[${axis}]`, length));
    if (shape.length > MAX_RANK) {
        throw failure(op, `shape ${text(shape)} has ${shape.length} axes, but at most ${MAX_RANK} are possible`, 'LIMIT_EXCEEDED');
    }
    return withinLimit(op, shape);
};

/**
 * Returns a shape of no more elements than a tensor can have.
 * @param {string} op
 * @param {Shape} shape
 */
export const withinLimit = (op, shape) => {
    if (sizeOf(shape) > MAX_SIZE) {
        throw failure(op, `shape ${text(shape)} has ${sizeOf(shape)} elements, but at most ${MAX_SIZE} are possible`, 'SHAPE_OVERFLOW');
    }
    return shape;
};

/**
 * Returns an axis from 0 on; negative ones count from the end.
 * @param {string} op
 * @param {any} axis
 * @param {Shape} shape
 * @returns {number}
 */
export const axisOf = (op, axis, shape, what = 'axis') => {
    const { length } = shape;
    if (!Number.isInteger(axis) || axis < -length || axis >= length) {
        const range = length === 0 ? 'a scalar has none' : `but must be from ${-length} to ${length - 1} for shape ${text(shape)}`;
        throw failure(op, `\`${what}\` is ${shown(axis)}, ${range}`, 'INVALID_ARGUMENT');
    }
    return axis < 0 ? axis + length : axis;
};

/**
 * Returns the axes of one number, of a list without repetitions, or all axes, in ascending order.
 * @param {string} op
 * @param {any} axes
 * @param {Shape} shape
 */
export const axesOf = (op, axes, shape) => {
    if (axes === undefined || axes === null) {
        return shape.map((_, axis) => axis);
    }
    const list = Array.isArray(axes) ? axes : [axes];
    const found = list.map((/** @type {any} */ axis) => axisOf(op, axis, shape)).sort((a, b) => a - b);
    if (new Set(found).size < found.length) {
        throw failure(op, `\`axis\` ${text(list)} names an axis twice`, 'INVALID_ARGUMENT');
    }
    return found;
};

/**
 * Returns the shape that two shapes broadcast to; undefined if they do not.
 * @param {Shape} a
 * @param {Shape} b
 * @returns {Shape | undefined}
 */
export const pairBroadcast = (a, b) => {
    if (b.length === 0) {
        return a;
    }
    const rank = Math.max(a.length, b.length);
    /** @type {Shape} */
    const shape = [];
    for (let axis = 0; axis < rank; axis++) {
        const m = a[a.length - rank + axis] ?? 1;
        const n = b[b.length - rank + axis] ?? 1;
        if (m !== n && m !== 1 && n !== 1) {
            return undefined;
        }
        shape.push(m === 1 ? n : m);
    }
    return shape;
};

/**
 * Returns the shape that all of the named shapes broadcast to, by NumPy's rules.
 * @param {string} op
 * @param {[name: string, shape: Shape][]} named
 */
export const broadcast = (op, named) =>
    named.reduce(([firstName, first], [name, shape]) => {
        const both = pairBroadcast(first, shape);
        if (!both) {
            const other = `${text(first)} of \`${firstName}\``;
            throw failure(op, `\`${name}\` has shape ${text(shape)}, which does not broadcast with ${other}`);
        }
        return [firstName, both];
    })[1];

/**
 * Returns the shape that replaces another: as large, with one length of −1 computed.
 * @param {string} op
 * @param {Shape} from
 * @param {any} target
 */
export const reshaped = (op, from, target) => {
    const shape = listOf(op, 'shape', target);
    const unknown = shape.indexOf(-1);
    if (unknown >= 0) {
        shape.forEach((length, axis) => typeof length === 'number' || whole(op, `shape[${axis}]`, length));
        const rest = sizeOf(shape.filter((_, axis) => axis !== unknown));
        const length = sizeOf(from) / rest;
        if (!Number.isInteger(length) || rest < 0) {
            throw failure(op, `shape ${text(from)} of ${sizeOf(from)} elements does not divide into ${text(shape)}`);
        }
        shape[unknown] = length;
    }
    const checked = checkedShape(op, shape);
    if (sizeOf(checked) !== sizeOf(from)) {
        throw failure(op, `${text(checked)} has ${sizeOf(checked)} elements, but shape ${text(from)} has ${sizeOf(from)}`);
    }
    return checked;
};

/**
 * Returns a shape without some axes, or with the length 1 in their place.
 * @param {Shape} shape
 * @param {number[]} axes
 * @param {boolean} keepDims
 */
export const reduced = (shape, axes, keepDims) =>
    keepDims ? shape.map((length, axis) => (axes.includes(axis) ? 1 : length)) : shape.filter((_, axis) => !axes.includes(axis));

/**
 * Returns the start, step and length of one range of a slice, along an axis of `length`.
 * @param {string} op
 * @param {any} range
 * @param {number} axis
 * @param {number} length
 */
export const rangeOf = (op, range, axis, length) => {
    const [start, end, step = 1, ...others] = Array.isArray(range) ? range : [];
    const what = `range ${axis}`;
    if (others.length > 0) {
        throw failure(op, `${what} is ${shown(range)}, but must be [start, end, step]`, 'INVALID_ARGUMENT');
    }
    const fits = (/** @type {any} */ value, /** @type {number} */ most) => Number.isInteger(value) && value >= -length && value <= most;
    const at = (/** @type {any} */ value, /** @type {number} */ missing, /** @type {number} */ most) => {
        if (value === undefined || value === null) {
            return missing;
        }
        if (!fits(value, most)) {
            throw failure(op, `${what} is ${shown(range)}, but axis ${axis} has ${length} elements`, 'INVALID_ARGUMENT');
        }
        return value < 0 ? value + length : value;
    };
    if (!Number.isInteger(step) || step === 0) {
        throw failure(op, `the step of ${what} is ${shown(step)}, but must be a whole number other than 0`, 'INVALID_ARGUMENT');
    }
    const from = at(start, step > 0 ? 0 : length - 1, step > 0 ? length : length - 1);
    const to = at(end, step > 0 ? length : -1, length);
    return { start: from, step, length: Math.max(0, Math.ceil((to - from) / step)) };
};
