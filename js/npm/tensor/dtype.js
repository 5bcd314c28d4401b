// The types of elements as callers see them. On a device all elements are f32; arithmetic gives f32.

/** How values that were read are returned: as an array, and one by one. */
const TYPES = {
    f32: { array: (values) => values, element: (value) => value },
    u32: { array: (values) => Uint32Array.from(values), element: (value) => value },
    bool: { array: (values) => Uint8Array.from(values), element: (value) => value !== 0 },
};

/** Returns values that were read in the array of their type. */
export const arrayOf = (dtype, values) => TYPES[dtype].array(values);

/** Returns an element of such an array as its type's value: a number or a boolean. */
export const elementOf = (dtype) => TYPES[dtype].element;

/** Returns the type of a result that consists of unchanged elements of several tensors. */
export const common = (nodes) => {
    const [{ dtype }] = nodes;
    return nodes.every((node) => node.dtype === dtype) ? dtype : 'f32';
};
