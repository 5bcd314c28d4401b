// Checks of arguments. Errors name the argument, its value and the requirement.

import { LOST, lengthOf } from './arrays.js';
import { RelampagoError } from '../common/error.js';
import { shown } from '../common/options.js';
import { untilAborted } from '../common/until_aborted.js';

/**
 * @param {string} what
 * @param {any} value
 * @param {string} requirement
 */
export const invalid = (what, value, requirement) =>
    new RelampagoError('INVALID_ARGUMENT', `\`${what}\` is ${shown(value)}, but must be ${requirement}`);

/**
 * @param {string} what
 * @param {string} owner
 */
export const foreign = (what, owner) =>
    new RelampagoError('FOREIGN', `\`${what}\` belongs to another ${owner}: copy its values to this one`);

/**
 * Returns an argument that must be an array.
 * @param {string} what
 * @param {any} value
 * @returns {any[]}
 */
export const list = (what, value) => {
    if (!Array.isArray(value)) {
        throw invalid(what, value, 'an array');
    }
    return value;
};

/** The requirement on an array, in the words that the module uses, too. */
export const WITHIN = 'within its buffer, which was detached or became too short';

/**
 * Returns the length of an argument that must be a Float32Array.
 * @param {string} what
 * @param {any} value
 */
export const checked = (what, value) => {
    const length = lengthOf(value);
    if (length < 0) {
        throw invalid(what, value, length === LOST ? WITHIN : 'a Float32Array');
    }
    return length;
};

/**
 * Returns the result of `start`, unless the options' signal aborts before. Messages begin with `prefix`.
 * @template T
 * @param {any} options
 * @param {() => T | Promise<T>} start
 * @returns {Promise<T>}
 */
export const unlessAborted = async (options, start, prefix = '') => {
    const signal = options?.signal ?? undefined;
    if (signal !== undefined && typeof signal.aborted !== 'boolean') {
        const message = `${prefix}\`signal\` is ${shown(signal)}, but must be an AbortSignal`;
        throw new RelampagoError('INVALID_ARGUMENT', message);
    }
    const aborted = () => new RelampagoError('ABORTED', `${prefix}aborted by the caller`, signal.reason);
    return untilAborted(signal, start, aborted);
};
