// Names of options. One that does not exist is refused, with the nearest name that does.

import { RelampagoError } from './error.js';

/** Writes any value as errors show it. */
export const shown = (value) => (Object(value) === value ? `an object (${value.constructor?.name})` : String(value));

/** The number of letters to insert, remove or replace between two names. */
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

/** Refuses properties of an object of options that are none of these names. `prefix` begins the message. */
export const requireNames = (given, names, prefix = '') => {
    if (Object(given) !== given) {
        throw new RelampagoError('INVALID_ARGUMENT', `${prefix}\`options\` is ${shown(given)}, but must be an object`);
    }
    const unknown = Object.keys(given).find((name) => !names.includes(name));
    if (unknown !== undefined) {
        const [nearest] = [...names].sort((a, b) => distance(a, unknown) - distance(b, unknown));
        const message = `${prefix}there is no option \`${unknown}\`; did you mean \`${nearest}\`?`;
        throw new RelampagoError('INVALID_ARGUMENT', message);
    }
};
