// Options of tensors' methods.

import { requireNames } from '../options.js';

/** Returns an operation's options; refuses names that do not exist. */
export const optionsOf = (op, given, names) => {
    if (given === undefined) {
        return {};
    }
    requireNames(given, names, `${op}: `);
    return given;
};

/** The options of methods that compute. */
export const ABORT = ['signal'];
