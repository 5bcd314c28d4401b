// What callers give, on its way to a worker.

import { DeviceBuffer, RelampagoError, classOf } from '../core.js';

const MOST_SPARE = 16;

/**
 * Buffers that workers returned, until they are collected: new memory takes longer to get than a copy to write.
 * @type {WeakRef<ArrayBuffer>[]}
 */
let spare = [];

/**
 * Lets buffers be used for copies.
 * @param {ArrayBuffer[]} buffers
 */
export function reuse(buffers) {
    spare = [...spare, ...buffers.map((buffer) => new WeakRef(buffer))];
    spare = spare.filter((buffer) => buffer.deref()).slice(-MOST_SPARE);
}

/**
 * A copy to give away, taken now; whatever is wrong with it is for the worker to say. `names` are those of an operation's
 * options, separated by spaces: other properties of the object belong to its class and are not copied.
 * @param {any} value
 * @param {string} [names]
 * @returns {any}
 */
export function copied(value, names) {
    if (ArrayBuffer.isView(value)) {
        return copyOf(/** @type {Float32Array} */ (value));
    }
    if (typeof value !== 'object' || value === null) {
        return value;
    }
    if (Array.isArray(value)) {
        return value.map((one) => copied(one));
    }
    if (value instanceof DeviceBuffer) {
        return {}; // It is as wrong.
    }
    return properties(value, names?.split(' '));
}

/**
 * All properties, inherited ones and those that classes have getters for, too: a message would leave these behind.
 * @param {any} value
 * @param {string[] | undefined} names
 */
function properties(value, names) {
    /** @type {Record<string, any>} */
    const copy = {};
    for (let owner = value; owner; owner = Object.getPrototypeOf(owner)) {
        for (const key of Object.getOwnPropertyNames(owner)) {
            // What every object has is in the copy, and a class's methods are no options.
            const isOption = names?.includes(key) ?? (owner === value || typeof value[key] !== 'function');
            if (isOption && !(key in copy)) {
                copy[key] = value[key];
            }
        }
    }
    // Only what is meant for a result is given away with it.
    delete copy.into;
    return copy;
}

/**
 * Takes a buffer of this size that a worker returned, if there is one.
 * @param {number} bytes
 */
function taken(bytes) {
    const place = spare.findIndex((buffer) => buffer.deref()?.byteLength === bytes);
    return place < 0 ? undefined : spare.splice(place, 1)[0].deref();
}

/**
 * The copy is of this realm, and of no class of the caller's.
 * @param {Float32Array} view
 */
function copyOf(view) {
    const Class = /** @type {Float32ArrayConstructor} */ (/** @type {any} */ (globalThis)[classOf(view) ?? 'DataView']);
    try {
        const buffer = taken(view.byteLength);
        if (!buffer) {
            return new Class(view);
        }
        const copy = new Class(buffer);
        copy.set(view);
        return copy;
    } catch (/** @type {any} */ error) {
        const code = error.name === 'RangeError' ? 'OUT_OF_MEMORY' : 'INVALID_ARGUMENT';
        throw new RelampagoError(code, `${view.length} values cannot be copied: ${error.message}`, error);
    }
}
