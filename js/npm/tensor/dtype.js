// The types of elements as callers see them. On a device all elements are f32; arithmetic gives f32.

/** @import { DType, Node } from './node.js' */

/** @typedef {{ array: (values: Float32Array) => any, element: (value: number) => number | boolean }} Type */

/**
 * How values that were read are returned: as an array, and one by one.
 * @type {Record<DType, Type>}
 */
const TYPES = {
    f32: { array: (values) => values, element: (value) => value },
    u32: { array: (values) => Uint32Array.from(values), element: (value) => value },
    bool: { array: (values) => Uint8Array.from(values), element: (value) => value !== 0 },
};

/**
 * Returns values that were read in the array of their type.
 * @param {DType} dtype
 * @param {Float32Array} values
 */
export const arrayOf = (dtype, values) => TYPES[dtype].array(values);

/**
 * Returns an element of such an array as its type's value: a number or a boolean.
 * @param {DType} dtype
 */
export const elementOf = (dtype) => TYPES[dtype].element;

/**
 * Returns the type of a result that consists of unchanged elements of several tensors.
 * @param {Node[]} nodes
 * @returns {DType}
 */
export const common = (nodes) => {
    const [{ dtype }] = nodes;
    return nodes.every((node) => node.dtype === dtype) ? dtype : 'f32';
};
