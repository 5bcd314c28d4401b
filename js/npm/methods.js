// Methods of the package's classes. On pages they refuse calls without their object, and their errors are explained; a
// worker leaves both to its page.

import { requireNames } from '../common/options.js';

/** The functions that `mix_ups.js` replaces on pages. */
export const page = {
    /** Refuses a call of a method without its object. */
    requireOwner() {},
    /** Returns an error whose message names the method. */
    explain: (error) => error,
};

/** Refuses options of a method that has none but `signal`. */
export const requireAbortable = (options, prefix) => {
    options == null || requireNames(options, ['signal'], prefix);
};

/** Returns a method that calls `call`; it refuses to without its object, and errors are explained. */
export const named = (Class, what, name, call) => {
    const entry = function (...values) {
        try {
            page.requireOwner(this, Class, what, name);
            return call.apply(this, values);
        } catch (error) {
            throw page.explain(error, values, entry, name);
        }
    };
    return entry;
};

/** The same for a method that returns a promise, which rejects then; `place` is that of options which have only `signal`. */
export const namedLater = (Class, what, name, call, place) => {
    const entry = async function (...values) {
        try {
            page.requireOwner(this, Class, what, name);
            requireAbortable(values[place]);
            return await call.apply(this, values);
        } catch (error) {
            throw page.explain(error, values, entry, name);
        }
    };
    return entry;
};
