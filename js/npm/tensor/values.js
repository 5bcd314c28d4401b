// Values of the host as tensors take and return them.

import { classOf, isLost, lengthOf } from '../arrays.js';
import { WITHIN } from '../checks.js';
import { DeviceBuffer } from '../device_buffer.js';
import { checkedShape, failure, shown, sizeOf, text } from './shape.js';

/**
 * @import { DType, Resident } from './node.js'
 * @import { Shape } from './shape.js'
 * @typedef {(values: Float32Array) => Float32Array | Resident} Copy
 */

const isList = (/** @type {any} */ value) => Array.isArray(value) || lengthOf(value) >= 0;

/**
 * Returns the shape of nested arrays, by their first elements.
 * @param {any} values
 */
const nestedShape = (values) => {
    /** @type {Shape} */
    const shape = [];
    for (let inner = values; isList(inner); [inner] = inner) {
        shape.push(inner.length);
    }
    return shape;
};

/**
 * Writes the numbers of nested arrays to `into`, in order; refuses arrays of other lengths.
 * @param {string} op
 * @param {any} values
 * @param {Shape} shape
 * @param {Float32Array} into
 */
const flattened = (op, values, shape, into) => {
    let at = 0;
    const visit = (/** @type {any} */ value, /** @type {number} */ axis) => {
        if (axis === shape.length) {
            if (typeof value !== 'number') {
                throw failure(op, `element ${at} is ${shown(value)}, but must be a number`, 'INVALID_ARGUMENT');
            }
            into[at++] = value;
            return;
        }
        if (!isList(value) || value.length !== shape[axis]) {
            const has = isList(value) ? `${value.length} elements` : `${shown(value)} in place of elements`;
            throw failure(op, `an array of axis ${axis} has ${has}, but the first one has ${shape[axis]}`);
        }
        if (axis === shape.length - 1 && !Array.isArray(value)) {
            into.set(value, at);
            at += value.length;
            return;
        }
        // Holes are elements, too, which are no numbers.
        for (const one of value) {
            visit(one, axis + 1);
        }
    };
    visit(values, 0);
    return into;
};

/**
 * Arrays of whole numbers that are copied to f32, and the types of their tensors.
 * @type {Record<string, DType>}
 */
const WHOLE = { Uint8Array: 'f32', Uint8ClampedArray: 'f32', Uint32Array: 'u32' };

/**
 * Returns whole numbers as f32; refuses numbers that an f32 cannot represent.
 * @param {string} op
 * @param {any} values
 */
const exact = (op, values) => {
    const source = new Float32Array(values);
    const at = source.findIndex((value, i) => value !== values[i]);
    if (at >= 0) {
        throw failure(op, `element ${at} is ${values[at]}, but f32 has all whole numbers only up to 16777216`, 'INVALID_ARGUMENT');
    }
    return source;
};

/**
 * Refuses a typed array that lies no longer within its buffer; ignores all other values.
 * @param {string} op
 * @param {string} what
 * @param {any} values
 */
export const requirePresent = (op, what, values) => {
    if (classOf(values) && isLost(values)) {
        throw failure(op, `\`${what}\` is ${shown(values)}, but must be ${WITHIN}`, 'INVALID_ARGUMENT');
    }
};

/**
 * Returns values and their own shape: a number, a typed array, which `copy` copies, or nested arrays.
 * @param {string} op
 * @param {string} what
 * @param {any} values
 * @param {Copy} copy
 * @returns {{ source: Float32Array | Resident, own: Shape, dtype?: DType }}
 */
const numbersOf = (op, what, values, copy) => {
    requirePresent(op, what, values);
    if (typeof values === 'number') {
        return { source: Float32Array.of(values), own: [] };
    }
    if (Array.isArray(values)) {
        const own = checkedShape(op, nestedShape(values));
        return { source: flattened(op, values, own, new Float32Array(sizeOf(own))), own };
    }
    if (lengthOf(values) >= 0) {
        return { source: copy(values), own: [values.length] };
    }
    const dtype = WHOLE[classOf(values) ?? ''];
    if (dtype) {
        return { source: exact(op, values), own: [values.length], dtype };
    }
    const hint = classOf(values) ?? shown(values);
    const needed = 'a number, a Float32Array, a Uint32Array, a Uint8Array, nested arrays of numbers or a DeviceBuffer';
    throw failure(op, `\`${what}\` is ${hint}, but must be ${needed}`, 'INVALID_ARGUMENT');
};

/**
 * Returns a copy of an array of numbers.
 * @param {Float32Array} values
 */
export const copied = (values) => new Float32Array(values);

/**
 * Returns the source, shape and type of a leaf. `copy` makes the source of an array, `wrap` that of a buffer;
 * errors name the operation and the argument.
 * @param {any} values
 * @param {any} given
 * @param {{ copy?: Copy, wrap?: (buffer: DeviceBuffer) => Resident, op?: string, what?: string }} [options]
 */
export const sourceOf = (values, given, { copy = copied, wrap, op = 'tensor', what = 'values' } = {}) => {
    /** @type {{ source: Float32Array | Resident, own: Shape, dtype?: DType }} */
    const { source, own, dtype = 'f32' } = wrap && values instanceof DeviceBuffer
        ? { source: wrap(values), own: [values.length] }
        : numbersOf(op, what, values, copy);
    const shape = given === undefined ? own : checkedShape('tensor', given);
    if (sizeOf(shape) !== sizeOf(own)) {
        throw failure('tensor', `there are ${sizeOf(own)} values, but shape ${text(shape)} has ${sizeOf(shape)}`);
    }
    return { source, shape, dtype };
};

/**
 * Returns values as nested arrays, whose elements `element` makes; one element for a scalar.
 * @param {ArrayLike<number>} values
 * @param {Shape} shape
 * @param {(value: number) => number | boolean} element
 * @returns {any}
 */
export const nested = (values, shape, element, start = 0) => {
    if (shape.length === 0) {
        return element(values[start]);
    }
    const [length, ...rest] = shape;
    const size = sizeOf(rest);
    return Array.from({ length }, (_, k) => nested(values, rest, element, start + k * size));
};
