/**
 * Fills `out` with the results of `f` for the elements of one to three inputs; returns why it cannot.
 * @param {(...values: number[]) => number} f
 * @param {Float32Array[]} inputs
 * @param {number[]} parameters
 * @param {Float32Array} out
 */
export function apply(f, inputs, parameters, out) {
    try {
        fill(f, inputs, parameters, out);
    } catch (error) {
        return told(error);
    }
}

/**
 * One function for all: V8 compiles it after some blocks, but would begin anew with a closure for each.
 * @param {(...values: number[]) => number} f
 * @param {Float32Array[]} inputs
 * @param {number[]} parameters
 * @param {Float32Array} out
 */
function fill(f, [x, y, z], [p, q], out) {
    for (let i = 0; i < out.length; i++) {
        const value = z ? f(x[i], y[i], z[i], p, q) : y ? f(x[i], y[i], p, q) : f(x[i], p, q);
        if (typeof value !== 'number') {
            throw new TypeError(`it gave ${value} and no number`);
        }
        out[i] = value;
    }
}

/**
 * Converts the error to text here: an exception of the error's own `toString` would end in the module.
 * @param {unknown} error
 */
function told(error) {
    try {
        return String(error);
    } catch {
        return 'it threw what has no text';
    }
}
