// Options of tensors' methods.

import { RelampagoError } from '../error.js';
import { requireNames } from '../options.js';
import { untilAborted } from '../until_aborted.js';
import { failure, shown } from './shape.js';

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

/** What `start` comes to with the options of a method that computes, unless the caller aborts before. */
export const abortable = async (op, given, start) => {
    const options = optionsOf(op, given, ABORT);
    const signal = options.signal ?? undefined;
    if (signal !== undefined && typeof signal.aborted !== 'boolean') {
        throw failure(op, `\`signal\` is ${shown(signal)}, but must be an AbortSignal`, 'INVALID_ARGUMENT');
    }
    const aborted = () => new RelampagoError('ABORTED', `${op}: aborted by the caller`, signal.reason);
    return untilAborted(signal, () => start(options), aborted);
};
