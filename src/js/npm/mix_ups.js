// Arguments that are easily mixed up: errors say what to do with them.

import { RelampagoError } from './error.js';

const isPromise = (value) => typeof value?.then === 'function';

/** Whether a value is of a class or of one below it, such as those of workers. */
const isOf = (name) => (value) => {
    for (let owner = Object(value); owner; owner = Object.getPrototypeOf(owner)) {
        if (owner.constructor?.name === name) {
            return true;
        }
    }
    return false;
};

/** What an argument may be instead, by what it must be, and what to do then. */
const HINTS = {
    Float32Array: [
        [isPromise, 'await the Promise first'],
        [isOf('Tensor'), 'use the methods of the tensor, or await its data()'],
        [isOf('DeviceBuffer'), 'a DeviceBuffer is for batch.input(buffer) and programs; or await its read()'],
    ],
    BufferId: [
        [isPromise, 'await the Promise first'],
        [isOf('Tensor'), 'use the methods of the tensor, or record its data()'],
        [isOf('DeviceBuffer'), 'record it with batch.input(buffer) first'],
        [ArrayBuffer.isView, 'record it with batch.upload(values) first'],
    ],
};

/**
 * Returns an error whose message begins with the method's name, and ends with what to do with an argument that was mixed
 * up. `entry` is what the caller called. The given error may belong to other calls, too, and stays as it is.
 */
export const explained = (error, values, entry, name) => {
    if (!(error instanceof RelampagoError)) {
        return error;
    }
    const { code, message, cause, stack } = error;
    const [, needed] = /must be a (Float32Array|BufferId)$/.exec(message) ?? [];
    const hint = HINTS[needed]?.find(([is]) => values.some(is))?.[1];
    const isNamed = message.startsWith(`${name}: `) || message.startsWith(`\`${name}\` of`);
    const text = (isNamed ? '' : `${name}: `) + message + (hint ? `; ${hint}` : '');
    const own = new RelampagoError(code, text, cause);
    if (hint) {
        Error.captureStackTrace?.(own, entry);
    } else {
        own.stack = stack?.replace(message, () => text);
    }
    return own;
};

/** Refuses a call of a method without its object. */
export const requireOwner = (owner, Class, what, name) => {
    if (!(owner instanceof Class)) {
        const message = `${name}: the method was called without its ${what}; call it as ${what}.${name}(…)`;
        throw new RelampagoError('INVALID_ARGUMENT', message);
    }
};
