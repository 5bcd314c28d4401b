// Objects as arguments of others: what computes for them.

import { ownedBy, ownedIf } from '../common/owner.js';
import { foreign, invalid } from './checks.js';

/**
 * @import { Owner } from '../common/owner.js'
 * @import { Executor } from './executors.js'
 */

/**
 * Whether a worker computes for a value.
 * @param {any} value
 */
export const isRemote = (value) => ownedIf(value)?.link !== undefined;

/**
 * Returns what computes for an argument, which must be an object of a class. With another object `beside` it must be where that
 * computes: in this thread, or in one worker. Which device of this thread it belongs to, the module checks.
 * @template {Executor} E
 * @param {string} what
 * @param {any} value
 * @param {new (...values: any[]) => Owner<E>} Class
 * @param {Owner<Executor>} [beside]
 */
export const partOf = (what, value, Class, beside) => {
    if (!(value instanceof Class)) {
        throw invalid(what, value, `a ${Class.name}`);
    }
    const part = ownedBy(value);
    if (beside && part.link !== ownedBy(beside).link) {
        throw foreign(what, 'device');
    }
    return part;
};
