// Stacks of errors: they begin with the caller's line, not within the package. Engines without
// `Error.captureStackTrace` show all lines.

/** Calls `f`; the stack of its error begins where the function `entry` was called. */
export const entered = (entry, f) => {
    try {
        return f();
    } catch (error) {
        Error.captureStackTrace?.(error, entry);
        throw error;
    }
};

/** Returns a method that returns a promise; where that rejects, the error's stack begins where the method was called. */
export const traced = (method) => {
    const entry = function (...values) {
        const here = {};
        Error.captureStackTrace?.(here, entry);
        return method.apply(this, values).catch((error) => {
            throw movedTo(here.stack, error);
        });
    };
    return entry;
};

/** Replaces methods by traced ones. */
export const traceAll = (owner, names) => names.forEach((name) => (owner[name] = traced(owner[name])));

/** Gives an error the lines of another stack. */
const movedTo = (stack, error) => {
    const lines = stack?.split('\n').filter((line) => /^\s+at /.test(line)) ?? [];
    if (lines.length > 0 && typeof error?.code === 'string') {
        error.stack = [`${error.name}: ${error.message}`, ...lines].join('\n');
    }
    return error;
};
