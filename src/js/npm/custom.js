/** Has `out` filled with what `f` gives for the values of one to three inputs at each place, or says why not. */
export function apply(f, [x, y, z], [p, q], out) {
    const at = z
        ? (i) => f(x[i], y[i], z[i], p, q)
        : y
          ? (i) => f(x[i], y[i], p, q)
          : (i) => f(x[i], p, q);
    try {
        for (let i = 0; i < out.length; i++) {
            const value = at(i);
            if (typeof value !== 'number') {
                throw new TypeError(`it gave ${value} and no number`);
            }
            out[i] = value;
        }
    } catch (error) {
        return told(error);
    }
}

/** In words, which are asked for here: what an error's own `toString` throws would end in the module. */
function told(error) {
    try {
        return String(error);
    } catch {
        return 'it threw what has no text';
    }
}
