// Errors of methods: they begin with the method's name and the caller's line, and say what to do with arguments that are
// easily mixed up.

import { RelampagoError } from '../common/error.js';
import { shown } from '../common/options.js';
import { movedTo } from '../common/stack.js';

/**
 * Returns a function that says whether a value is of a class.
 * @param {string} name
 */
const isOf = (name) => (/** @type {any} */ value) => value?.constructor?.name === name;

/**
 * For each requirement on an argument: the values that are easily passed instead, and advice for each.
 * @type {Record<string, [is: (value: any) => boolean, advice: string][]>}
 */
const HINTS = {
    Float32Array: [
        [isOf('Tensor'), 'use the methods of the tensor, or await its data()'],
        [isOf('DeviceBuffer'), 'a DeviceBuffer is for batch.input(buffer) and programs; or await its read()'],
    ],
    BufferId: [
        [isOf('Tensor'), 'use the methods of the tensor, or record its data()'],
        [isOf('DeviceBuffer'), 'record it with batch.input(buffer) first'],
        [ArrayBuffer.isView, 'record it with batch.upload(values) first'],
    ],
};

/**
 * Returns an error whose message begins with the method's name, and ends with what to do with an argument that was mixed
 * up. Its stack begins where `entry` was called, where the caller awaits that. The given error may belong to other calls,
 * too, and stays as it is. `here` has a stack that replaces its own.
 * @param {unknown} error
 * @param {any[]} values
 * @param {Function} entry
 * @param {string} name
 * @param {{ stack?: string }} [here]
 */
export const explained = (error, values, entry, name, here) => {
    if (!(error instanceof RelampagoError)) {
        return error;
    }
    const { code, message, cause, stack } = error;
    const [, needed] = /must be a (Float32Array|BufferId)$/.exec(message) ?? [];
    const wrong = needed && values.flat().find((value) => message.includes(` is ${shown(value)}, `));
    const hint = needed && HINTS[needed].find(([is]) => is(wrong))?.[1];
    // In place of the name of a method that this one calls.
    const what = message.startsWith(`\`${name}\` of`) ? message : `${name}: ${message.replace(/^\w+: /, '')}`;
    const text = what + (hint ? `; ${hint}` : '');
    const own = new RelampagoError(code, text, cause);
    Error.captureStackTrace?.(own, entry);
    if (!/\n\s+at |@.*:\d/.test(own.stack ?? '')) {
        own.stack = stack?.replace(message, () => text);
    }
    return here ? movedTo(here, own) : own;
};

/**
 * Refuses a call of a method without its object.
 * @param {any} owner
 * @param {Function} Class
 * @param {string} what
 * @param {string} name
 */
export const requireOwner = (owner, Class, what, name) => {
    if (!(owner instanceof Class)) {
        const message = `${name}: the method was called without its ${what}; call it as ${what}.${name}(…)`;
        throw new RelampagoError('INVALID_ARGUMENT', message);
    }
};
