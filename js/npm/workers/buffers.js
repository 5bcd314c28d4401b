// The buffers that messages give away.

/**
 * Returns the buffers of arrays in lists, and in lists in these, and of those for results.
 * @param {any[]} lists
 * @returns {ArrayBuffer[]}
 */
export function buffersOf(lists) {
    const buffers = lists.flat(2).map((value) => (value?.into ?? value)?.buffer);
    return buffers.filter((buffer) => buffer?.[Symbol.toStringTag] === 'ArrayBuffer');
}
