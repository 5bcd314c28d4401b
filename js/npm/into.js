// Results in arrays that the caller gives.

import { LOST, lengthOf, overlap } from './arrays.js';
import { WITHIN, invalid } from './checks.js';
import { RelampagoError } from '../common/error.js';
import { requireNames, shown } from '../common/options.js';

/** @typedef {Float32Array | undefined} Into */

export const RESULT_OPTIONS = ['into', 'signal'];

/**
 * Returns the array that a caller wants a result in, if nothing is overwritten before it is read: elements of an input that
 * is the result's array are read with or before those of their index, if it is as long.
 * @param {any} into
 * @param {any[]} inputs
 * @returns {Into}
 */
export const apart = (into, inputs) => {
    /** @param {any} input */
    const overlaps = (input) => input !== into && ArrayBuffer.isView(input) && overlap(input, into);
    return ArrayBuffer.isView(into) && !inputs.some(overlaps) ? /** @type {Float32Array} */ (into) : undefined;
};

/**
 * Checks the array that the caller wants a result in, if in any.
 * @param {any} result
 * @param {any} into
 */
export const fit = (result, into) => {
    if (into === undefined) {
        return;
    }
    const present = lengthOf(into);
    if (present === LOST) {
        throw invalid('into', into, WITHIN);
    }
    if (present !== result.length) {
        const has = present < 0 ? `is ${shown(into)}` : `has ${present} values`;
        const { length } = result;
        const needed = length === undefined ? 'the result is a number' : `must be a Float32Array of ${length} values`;
        throw new RelampagoError('LENGTH_MISMATCH', `\`into\` ${has}, but ${needed}`);
    }
};

/**
 * Returns the result, in the array that the caller wants it in.
 * @template Result
 * @param {Result} result
 * @param {any} into
 * @returns {Result}
 */
export const placed = (result, into) => {
    if (into === undefined) {
        return result;
    }
    into !== result && into.set(result);
    return into;
};

/**
 * Returns results in arrays, once all of these are right.
 * @param {Float32Array[]} results
 * @param {any[]} into
 */
export const allPlaced = (results, into) => {
    if (into.length > results.length) {
        throw new RelampagoError('LENGTH_MISMATCH', `\`into\` has ${into.length} arrays for ${results.length} results`);
    }
    results.forEach((result, place) => {
        fit(result, into[place]);
        const own = into[place];
        /** @param {any} other */
        const shares = (other) => other && other.buffer === own.buffer && overlap(other, own);
        if (own && into.slice(0, place).some(shares)) {
            throw invalid('into', own, 'an array of each result\'s own');
        }
    });
    return results.map((result, place) => placed(result, into[place]));
};

/**
 * Returns the values that `read` resolves to, in the array that the options give.
 * @param {any} options
 * @param {(into: Into) => Promise<Float32Array>} read
 */
export const readInto = async (options, read) => {
    options == null || requireNames(options, RESULT_OPTIONS);
    const into = options?.into;
    const values = await read(into);
    fit(values, into);
    return placed(values, into);
};
