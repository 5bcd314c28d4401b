// Options of tensors' methods.

import { unlessAborted } from '../checks.js';
import { requireNames } from '../../common/options.js';

/**
 * Returns an operation's options; refuses names that do not exist.
 * @param {string} op
 * @param {any} given
 * @param {string[]} names
 * @returns {any}
 */
export const optionsOf = (op, given, names) => {
    if (given === undefined) {
        return {};
    }
    requireNames(given, names, `${op}: `);
    return given;
};

/** The options of methods that compute. */
export const ABORT = ['signal'];

/**
 * Returns the result of `start` with the options of a method that computes, unless the caller aborts before.
 * @template T
 * @param {string} op
 * @param {any} given
 * @param {(options: any) => T | Promise<T>} start
 */
export const abortable = async (op, given, start) => {
    const options = optionsOf(op, given, ABORT);
    return unlessAborted(options, () => start(options), `${op}: `);
};
