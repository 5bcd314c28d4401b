// Every array that a caller hands in is checked, read and written here. It may belong to another realm,
// so internal slots alone tell its class; its buffer may be detached, resized, or grown by another thread.

const { prototype } = Object.getPrototypeOf(Float32Array);
/**
 * @param {string | symbol} name
 * @returns {{ call(array: any): any }}
 */
const slot = (name) => /** @type {PropertyDescriptor & { get(): any }} */ (Object.getOwnPropertyDescriptor(prototype, name)).get;
const tag = slot(Symbol.toStringTag);
// V8 11.3, once it has optimised `array.length`, gives the length from before an array was detached.
const size = slot('length');

/**
 * The name of a typed array's class; undefined of anything else.
 * @param {any} value
 * @returns {string | undefined}
 */
export const classOf = (value) => tag.call(value);

/** The length of an array that lies no longer within its buffer. */
export const LOST = -2;

/**
 * Whether a typed array of any class lies no longer within its buffer.
 * @param {any} array
 */
export const isLost = (array) => {
    try {
        // Throws unless the array lies within its buffer. JavaScriptCore, once it has optimised this, leaves
        // out a call of `keys` whose result is not used.
        return size.call(array) === 0 && prototype.includes.call(array);
    } catch {
        return true;
    }
};

/**
 * Returns the length of an array of numbers, or of bytes, −1 of anything else, or `LOST`.
 * @param {any} value
 * @param {boolean} [bytes]
 * @returns {number}
 */
export const lengthOf = (value, bytes) => {
    if (classOf(value) !== (bytes ? 'Uint8Array' : 'Float32Array')) {
        return -1;
    }
    const length = size.call(value);
    return length === 0 && isLost(value) ? LOST : length;
};

/**
 * Returns `length` elements from `start` on, of this realm's class `Class`; undefined where there are fewer.
 * @param {any} array
 * @param {number} start
 * @param {number} length
 * @param {any} [Class]
 */
export const part = (array, start, length, Class = Float32Array) =>
    size.call(array) < start + length
        ? undefined
        : new Class(array.buffer, array.byteOffset + start * Class.BYTES_PER_ELEMENT, length);

/**
 * Returns the elements of `array` from `start` on that the other array has room for: mostly the whole array.
 * @param {any} array
 * @param {number} start
 * @param {any} other
 */
const opposite = (array, start, { length, constructor }) =>
    length === 0 || (start === 0 && size.call(array) === length) ? array : part(array, start, length, constructor);

/**
 * Fills `to` with the elements from `start` on; returns whether there are as many.
 * @param {any} array
 * @param {number} start
 * @param {any} to
 */
export const read = (array, start, to) => {
    const from = opposite(array, start, to);
    from && to.length && to.set(from);
    return from !== undefined;
};

/**
 * Writes `from` to the elements from `start` on; returns whether there are as many.
 * @param {any} array
 * @param {number} start
 * @param {any} from
 */
export const write = (array, start, from) => {
    const to = opposite(array, start, from);
    to && from.length && to.set(from);
    return to !== undefined;
};

/**
 * Whether two buffers may be one block of memory, which several objects stand for where threads share it.
 * @param {ArrayBufferLike} a
 * @param {ArrayBufferLike} b
 */
const isSameBlock = (a, b) => a === b || (isShared(a) && isShared(b));
const isShared = (/** @type {ArrayBufferLike} */ buffer) => buffer[Symbol.toStringTag] === 'SharedArrayBuffer';

/**
 * Whether two arrays may have memory in common. All objects of a shared block begin with its first byte.
 * @param {ArrayBufferView} a
 * @param {ArrayBufferView} b
 */
export const overlap = (a, b) =>
    isSameBlock(a.buffer, b.buffer) &&
    a.byteOffset < b.byteOffset + b.byteLength &&
    b.byteOffset < a.byteOffset + a.byteLength;
