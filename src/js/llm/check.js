// Checks of what users pass. Nothing is coerced.

import { RelampagoError } from './error.js';
import { requireNames, shown } from './options.js';

export const invalid = (what, value, requirement) => {
    const hint = typeof value?.then === 'function' ? '; await the Promise first' : '';
    return new RelampagoError('INVALID_ARGUMENT', `\`${what}\` is ${shown(value)}, but must be ${requirement}${hint}`);
};

/** Refuses options that do not exist; `checks` has a function for each one that does. */
export function options(given, checks) {
    if (given === undefined) {
        return {};
    }
    requireNames(given, Object.keys(checks));
    const checked = {};
    for (const name of Object.keys(given)) {
        if (given[name] !== undefined) {
            checked[name] = checks[name](given[name], name);
        }
    }
    return checked;
}

const check = (valid, requirement) => (value, what) => {
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
export const seed = check((value) => Number.isSafeInteger(value) && value >= 0, 'a whole number from 0 to 2^53 - 1');
export const abortSignal = check((value) => typeof value?.aborted === 'boolean', 'an AbortSignal');

/** One of some names. */
export const oneOf = (...names) => {
    const quoted = names.map((name) => `'${name}'`);
    return check((value) => names.includes(value), `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`);
};

/** Token ids. */
export function tokens(list, what = 'tokens') {
    if (typeof list?.length !== 'number' || typeof list === 'string') {
        throw invalid(what, list, 'an array of token ids');
    }
    return Uint32Array.from(list, (token) => count(token, what));
}

/** Biases by token id, as pairs. */
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

/** The schema, as JSON, of OpenAI's `response_format`; undefined for text. */
export function responseFormat(format, what) {
    const only = (...names) => requireNames(format, ['type', ...names], `\`${what}\`: `);
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
            try {
                return JSON.stringify(schema);
            } catch (error) {
                throw new RelampagoError('INVALID_ARGUMENT', `\`${inner}.schema\` is no JSON: ${error.message}`, error);
            }
        }
        default:
            throw invalid(`${what}.type`, format?.type, "'text', 'json_object' or 'json_schema'");
    }
}

/** Texts: one, or a list. */
export const texts = (value, what) => (Array.isArray(value) ? value : [value]).map((each, i) => text(each, `${what}[${i}]`));

/** Stop strings: one, or a list. */
export const stops = (value, what) => (Array.isArray(value) ? value : [value]).map((each) => text(each, what));

/** The roles and contents of messages, one after the other. */
export function messages(list) {
    if (!Array.isArray(list)) {
        throw invalid('messages', list, 'an array of messages');
    }
    if (list.length === 0) {
        throw new RelampagoError('EMPTY', '`messages` must have at least one message');
    }
    return list.flatMap((message, i) => [
        text(message?.role, `messages[${i}].role`),
        text(message?.content, `messages[${i}].content`),
    ]);
}

/** Bytes, whose buffer stays the caller's. */
export function bytes(value, what) {
    if (ArrayBuffer.isView(value)) {
        return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    }
    if (!(value instanceof ArrayBuffer)) {
        throw invalid(what, value, 'an ArrayBuffer or a Uint8Array');
    }
    return new Uint8Array(value);
}

export const aborted = (signal) => new RelampagoError('ABORTED', 'aborted by the caller', signal?.reason);

export const disposed = (what = 'LanguageModel') =>
    new RelampagoError('DISPOSED', `this ${what} was disposed of: ${what === 'LanguageModel' ? 'load it again' : 'make a new one'}`);
