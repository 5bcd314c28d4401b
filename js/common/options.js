// Names of options. One that does not exist is refused, with the name that is meant or with all names.

import { RelampagoError } from './error.js';

/**
 * Writes any value as errors show it: a string in quotation marks, since it may look like a number.
 * @param {any} value
 */
export const shown = (value) => {
    if (typeof value?.then === 'function') {
        return 'a Promise that was not awaited';
    }
    if (Object(value) === value) {
        return `an object (${value.constructor?.name})`;
    }
    return typeof value === 'string' ? `'${value}'` : typeof value === 'bigint' ? `${value}n` : String(value);
};

/**
 * The number of letters to insert, remove or replace between two names.
 * @param {string} a
 * @param {string} b
 */
const distance = (a, b) => {
    let row = Array.from({ length: b.length + 1 }, (_, i) => i);
    for (let i = 1; i <= a.length; i++) {
        const next = [i];
        for (let j = 1; j <= b.length; j++) {
            next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
        }
        row = next;
    }
    return row[b.length];
};

/**
 * Refuses properties of an object of options that are none of these names. `prefix` begins the message.
 * @param {any} given
 * @param {string[]} names
 */
export const requireNames = (given, names, prefix = '') => {
    if (Object(given) !== given) {
        // A prefix that ends with a name is that of an option which has options.
        const what = prefix.endsWith('`: ') ? prefix.slice(0, -2) : `${prefix}\`options\``;
        throw new RelampagoError('INVALID_ARGUMENT', `${what} is ${shown(given)}, but must be an object`);
    }
    if (Object.prototype.toString.call(given) === '[object AbortSignal]') {
        throw new RelampagoError('INVALID_ARGUMENT', `${prefix}\`options\` is an AbortSignal, but must be { signal }`);
    }
    const unknown = Object.keys(given).find((name) => !names.includes(name));
    if (unknown !== undefined) {
        const by = (/** @type {string} */ name) => distance(name.toLowerCase(), unknown.toLowerCase());
        const [nearest] = [...names].sort((a, b) => by(a) - by(b));
        const isNear = 2 * by(nearest) <= unknown.length;
        const hint = isNear ? `did you mean \`${nearest}\`?` : `there are \`${names.join('`, `')}\``;
        const message = `${prefix}there is no option \`${unknown}\`; ${hint}`;
        throw new RelampagoError('INVALID_ARGUMENT', message);
    }
};

/**
 * Refuses values that are not options of a view.
 * @param {any} given
 */
export const requireViewOptions = (given) => {
    requireNames(given, ['layout', 'offset', 'strides'], 'TensorView: ');
    if (given.layout !== undefined && given.strides !== undefined) {
        throw new RelampagoError('INVALID_ARGUMENT', 'TensorView: a view has a `layout` or `strides`, but not both');
    }
};
