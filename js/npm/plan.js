/**
 * Returns the plan that a list of numbers and names describes: see `described` in `src/js/program.rs`.
 * @param {any[]} description
 */
export const planOf = (description) => {
    let at = 0;
    const next = () => description[at++];
    /**
     * @template T
     * @param {number} length
     * @param {() => T} item
     */
    const list = (length, item) => Array.from({ length }, item);
    const place = (/** @type {number} */ number) => (number < 0 ? { input: -1 - number } : { buffer: number });
    const buffers = list(next(), next);
    const kernels = [];
    while (at < description.length) {
        const backend = next();
        const operations = [];
        while (typeof description[at] === 'string') {
            operations.push(next());
        }
        const writes = { length: next(), ...place(next()) };
        const reads = list(next(), () => ({ length: next(), ...place(next()) }));
        const bytesMoved = reads.reduce((sum, read) => sum + read.length, writes.length) * 4;
        /** @type {{ milliseconds?: number, bytesMoved: number, [name: string]: any }} */
        const kernel = { operations, backend, reads, writes, bytesMoved };
        kernels.push(kernel);
    }
    return { kernels, buffers };
};
