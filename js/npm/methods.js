// Methods of the package's classes: they refuse calls without their object, and their errors are explained.

import { stackAbove } from '../common/stack.js';
import { requireNames } from '../common/options.js';
import { ownedBy } from '../common/owner.js';
import { explained, requireOwner } from './mix_ups.js';
import { isRemote } from './parts.js';
import { isFull, makeRoom } from './room.js';

/**
 * Refuses options of a method that has none but `signal`.
 * @param {any} options
 * @param {string} [prefix]
 */
export const requireAbortable = (options, prefix) => {
    options == null || requireNames(options, ['signal'], prefix);
};

/**
 * Returns a method that calls `call`. `what` is the noun of the class in advice.
 * @param {Function} Class
 * @param {string} what
 * @param {string} name
 * @param {(this: any, ...values: any[]) => any} call
 */
export const named = (Class, what, name, call) => {
    /**
     * @this {any}
     * @param {any[]} values
     */
    const entry = function (...values) {
        try {
            requireOwner(this, Class, what, name);
            return call.apply(this, values);
        } catch (error) {
            throw explained(error, values, entry, name);
        }
    };
    return entry;
};

/**
 * Returns a method that calls `call`, which returns a promise; errors reject it. A method with a `place` has at this position
 * options with `signal` alone, and makes new objects, so it lets finalizers run.
 * @param {Function} Class
 * @param {string} what
 * @param {string} name
 * @param {(this: any, ...values: any[]) => any} call
 * @param {number} [place]
 */
export const namedLater = (Class, what, name, call, place) => {
    /**
     * @this {any}
     * @param {any[]} values
     */
    const entry = async function (...values) {
        // An error of a worker has none of the caller's lines in its stack.
        const here = isRemote(this) ? stackAbove(entry) : undefined;
        try {
            requireOwner(this, Class, what, name);
            place === undefined || requireAbortable(values[place]);
            const result = await call.apply(this, values);
            place !== undefined && isFull() && await makeRoom();
            return result;
        } catch (error) {
            throw explained(error, values, entry, name, here);
        }
    };
    return entry;
};

/**
 * Returns a method that calls that of what its object owns.
 * @param {string} name
 */
const forwarded = (name) => {
    /**
     * @this {any}
     * @param {any[]} values
     */
    return function (...values) {
        /** @type {any} */
        const owned = ownedBy(this);
        return owned[name](...values);
    };
};

/**
 * Wraps methods of a class while it is defined, in a static block of it: `now` by `named`, and `later` by `namedLater` with
 * the positions of their options. A method that the class does not have calls that of what its objects own.
 * @param {Function} Class
 * @param {string} what
 * @param {string[]} now
 * @param {Record<string, number | undefined>} later
 */
export const guard = (Class, what, now, later = {}) => {
    const { prototype } = Class;
    const methodOf = (/** @type {string} */ name) => prototype[name] ?? forwarded(name);
    now.forEach((name) => (prototype[name] = named(Class, what, name, methodOf(name))));
    for (const [name, place] of Object.entries(later)) {
        prototype[name] = namedLater(Class, what, name, methodOf(name), place);
    }
};
