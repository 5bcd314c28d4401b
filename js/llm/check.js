// Checks of users' arguments. Nothing is coerced.

import { RelampagoError } from '../common/error.js';
import { requireNames, shown } from '../common/options.js';

/**
 * @param {string} what
 * @param {any} value
 * @param {string} requirement
 */
export const invalid = (what, value, requirement) =>
    new RelampagoError('INVALID_ARGUMENT', `\`${what}\` is ${shown(value)}, but must be ${requirement}`);

/** @typedef {(value: any, what: string) => any} Check a function that returns an argument's value, or throws */

/**
 * Refuses options that do not exist; `checks` has a function for each one that does.
 * @param {any} given
 * @param {Record<string, Check>} checks
 * @returns {Record<string, any>}
 */
export function options(given, checks) {
    if (given === undefined) {
        return {};
    }
    requireNames(given, Object.keys(checks));
    /** @type {Record<string, any>} */
    const checked = {};
    for (const name of Object.keys(given)) {
        if (given[name] !== undefined) {
            checked[name] = checks[name](given[name], name);
        }
    }
    return checked;
}

/**
 * Refuses the call of a constructor that has no engine, which is a user's.
 * @param {any} engine
 * @param {string} what
 * @param {string} method
 */
export function made(engine, what, method) {
    if (!engine) {
        throw new RelampagoError('UNSUPPORTED', `${what} are made by ${method}`);
    }
}

/**
 * @param {(value: any) => boolean} valid
 * @param {string} requirement
 * @returns {Check}
 */
const check = (valid, requirement) => (/** @type {any} */ value, /** @type {string} */ what) => {
    if (!valid(value)) {
        throw invalid(what, value, requirement);
    }
    return value;
};

export const number = check((value) => typeof value === 'number' && Number.isFinite(value), 'a finite number');
export const text = check((value) => typeof value === 'string', 'a string');
export const boolean = check((value) => typeof value === 'boolean', 'true or false');
export const callable = check((value) => typeof value === 'function', 'a function');
export const count = check(
    (value) => Number.isInteger(value) && value >= 0 && value < 2 ** 32,
    'a whole number from 0 to 4,294,967,295',
);
export const threads = check(
    (value) => value === 'auto' || (Number.isInteger(value) && value >= 1 && value <= 64),
    "a whole number from 1 to 64, or 'auto'",
);
export const seed = check((value) => Number.isSafeInteger(value) && value >= 0, 'a whole number from 0 to 2^53 - 1');
export const abortSignal = check((value) => typeof value?.aborted === 'boolean', 'an AbortSignal');

/**
 * One of some names.
 * @param {...string} names
 */
export const oneOf = (...names) => {
    const quoted = names.map((name) => `'${name}'`);
    return check((value) => names.includes(value), `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`);
};

/**
 * Token ids.
 * @param {any} list
 */
export function tokens(list, what = 'tokens') {
    if (typeof list?.length !== 'number' || typeof list === 'string') {
        throw invalid(what, list, 'an array of token ids');
    }
    try {
        return Uint32Array.from(list, (token) => count(token, what));
    } catch (error) {
        throw error instanceof RangeError ? invalid(`${what}.length`, list.length, 'a length that an array can have') : error;
    }
}

/**
 * Biases by token id, as pairs.
 * @param {any} object
 * @param {string} what
 */
export function biases(object, what) {
    if (Object(object) !== object || Array.isArray(object)) {
        throw invalid(what, object, 'an object of numbers by token id');
    }
    return Object.entries(object).flatMap(([id, bias]) => {
        if (!/^\d+$/.test(id)) {
            throw invalid(what, id, 'an object of numbers by token id');
        }
        return [count(Number(id), what), number(bias, `${what}[${id}]`)];
    });
}

/**
 * An object as JSON; functions, and objects whose `toJSON` says so, have none.
 * @param {any} object
 * @param {string} what
 */
function json(object, what) {
    let text;
    try {
        text = JSON.stringify(object);
    } catch (/** @type {any} */ error) {
        throw new RelampagoError('INVALID_ARGUMENT', `\`${what}\` is no JSON: ${error.message}`, error);
    }
    if (text === undefined) {
        throw invalid(what, object, 'an object that has JSON');
    }
    return text;
}

/**
 * The schema, as JSON, of OpenAI's `response_format`; undefined for text.
 * @param {any} format
 * @param {string} what
 */
export function responseFormat(format, what) {
    const only = (/** @type {string[]} */ ...names) => requireNames(format, ['type', ...names], `\`${what}\`: `);
    switch (format?.type) {
        case 'text':
            return only();
        case 'json_object':
            only();
            return '{"type":"object"}';
        case 'json_schema': {
            only('json_schema');
            const inner = `${what}.json_schema`;
            const schema = format.json_schema?.schema;
            if (Object(schema) !== schema) {
                throw invalid(`${inner}.schema`, schema, 'a JSON schema');
            }
            requireNames(format.json_schema, ['schema', 'name', 'description', 'strict'], `\`${inner}\`: `);
            return json(schema, `${inner}.schema`);
        }
        default:
            throw invalid(`${what}.type`, format?.type, "'text', 'json_object' or 'json_schema'");
    }
}

/**
 * Texts: one, or a list.
 * @param {any} value
 * @param {string} what
 * @returns {string[]}
 */
export const texts = (value, what) => (Array.isArray(value) ? value : [value]).map((each, i) => text(each, `${what}[${i}]`));

/**
 * Stop strings: one, or a list.
 * @param {any} value
 * @param {string} what
 * @returns {string[]}
 */
export const stops = (value, what) => (Array.isArray(value) ? value : [value]).map((each) => text(each, what));

const textOrParts = check((value) => typeof value === 'string', 'a string or an array of text parts');
const textType = check((value) => value === 'text', "'text', the only type of parts that a model reads");

/**
 * The text of a message as OpenAI's API has it: a string, parts of which all are texts, or null of an assistant, whose
 * content may be nothing but calls of tools.
 * @param {any} message
 * @param {string} what
 */
function content({ role, content: given, tool_calls }, what) {
    if (role === 'assistant' && (given === null || (given === undefined && tool_calls))) {
        return '';
    }
    if (!Array.isArray(given)) {
        return textOrParts(given, what);
    }
    const parts = given.map((part, i) => {
        textType(part?.type, `${what}[${i}].type`);
        return text(part.text, `${what}[${i}].text`);
    });
    return parts.join('');
}

/**
 * Messages with the properties that templates may use. Rust checks calls.
 * @param {any} list
 */
export function messages(list) {
    if (!Array.isArray(list)) {
        throw invalid('messages', list, 'an array of messages');
    }
    if (list.length === 0) {
        throw new RelampagoError('EMPTY', '`messages` must have at least one message');
    }
    return list.map((message, i) => {
        const what = `messages[${i}]`;
        /** @type {Record<string, any>} */
        const checked = { role: text(message?.role, `${what}.role`), content: content(message, `${what}.content`) };
        for (const name of ['tool_call_id', 'reasoning_content']) {
            message[name] == null || (checked[name] = text(message[name], `${what}.${name}`));
        }
        message.tool_calls == null || (checked.tool_calls = plain(message.tool_calls, `${what}.tool_calls`));
        return checked;
    });
}

/**
 * A copy of an object that JSON can have. Rust checks what it has.
 * @param {any} value
 * @param {string} what
 */
export const plain = (value, what) => JSON.parse(json(value, what));

/**
 * Calls `work`. If it throws a `TypeError`, since the buffer of `value` is detached, throws a typed error instead.
 * @template T
 * @param {any} value
 * @param {string} what
 * @param {() => T} work
 */
function within(value, what, work) {
    try {
        return work();
    } catch (error) {
        throw error instanceof TypeError ? invalid(what, value, 'within its buffer, which was detached or became too short') : error;
    }
}

/**
 * The bytes of a buffer or a view.
 * @param {any} value
 * @param {string} what
 */
export const view = (value, what) =>
    within(value, what, () => (ArrayBuffer.isView(value)
        ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
        : new Uint8Array(value)));

/**
 * A copy of bytes, which the caller may change or transfer while a call waits for its turn.
 * @param {any} value
 * @param {string} what
 */
export function bytes(value, what) {
    if (!ArrayBuffer.isView(value) && !(value instanceof ArrayBuffer)) {
        throw invalid(what, value, 'an ArrayBuffer or a Uint8Array');
    }
    return view(value, what).slice();
}

/**
 * A copy of a Float32Array of `length` values.
 * @param {any} value
 * @param {number} length
 * @param {string} what
 */
export function floats(value, length, what) {
    if (!(value instanceof Float32Array)) {
        throw invalid(what, value, 'a Float32Array');
    }
    view(value, what);
    if (value.length !== length) {
        throw new RelampagoError('LENGTH_MISMATCH', `\`${what}\` has ${value.length} values, but must have ${length}`);
    }
    return within(value, what, () => new Float32Array(value));
}

/**
 * Throws if a signal has aborted.
 * @param {AbortSignal} [signal]
 */
export const unaborted = (signal) => {
    if (signal?.aborted) {
        throw aborted(signal);
    }
};

/** @param {AbortSignal} [signal] */
export const aborted = (signal) => new RelampagoError('ABORTED', 'aborted by the caller', signal?.reason);

export const disposed = (what = 'LanguageModel') =>
    new RelampagoError('DISPOSED', `this ${what} was disposed of: ${what === 'LanguageModel' ? 'load it again' : 'make a new one'}`);
