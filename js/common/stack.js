// Stacks of errors: they begin with the caller's line, not within the package. Engines without
// `Error.captureStackTrace` show all lines.

/**
 * Calls `f`; the stack of its error begins where the function `entry` was called.
 * @template T
 * @param {Function} entry
 * @param {() => T} f
 */
export const entered = (entry, f) => {
    try {
        return f();
    } catch (error) {
        Error.captureStackTrace?.(/** @type {object} */ (error), entry);
        throw error;
    }
};

/**
 * Returns an object whose `stack`, where the engine can cut one, begins where the function `entry` was called. V8 writes the
 * text when it is read.
 * @param {Function} entry
 * @returns {{ stack?: string }}
 */
export const stackAbove = (entry) => {
    /** @type {{ stack?: string }} */
    const here = {};
    Error.captureStackTrace?.(here, entry);
    return here;
};

/**
 * Returns a method that returns a promise; where that rejects, the error's stack begins where the method was called.
 * @template {(...values: any[]) => Promise<any>} Method
 * @param {Method} method
 * @returns {Method}
 */
export const traced = (method) => {
    /**
     * @this {any}
     * @param {any[]} values
     */
    const entry = function (...values) {
        const here = stackAbove(entry);
        return method.apply(this, values).catch((error) => {
            throw movedTo(here, error);
        });
    };
    return /** @type {Method} */ (entry);
};

/**
 * Replaces methods by traced ones.
 * @param {any} owner
 * @param {string[]} names
 */
export const traceAll = (owner, names) => names.forEach((name) => (owner[name] = traced(owner[name])));

/**
 * Gives an error the lines of another stack.
 * @param {{ stack?: string }} here
 * @param {any} error
 */
export const movedTo = ({ stack }, error) => {
    const lines = stack?.split('\n').filter((line) => /^\s+at /.test(line)) ?? [];
    if (lines.length > 0 && typeof error?.code === 'string') {
        error.stack = [`${error.name}: ${error.message}`, ...lines].join('\n');
    }
    return error;
};
