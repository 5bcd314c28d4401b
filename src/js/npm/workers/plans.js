// How large operations are divided by rows. A plan takes the number of threads and an operation's
// arguments, which are right, and gives each thread's, how many values of its result are skipped,
// and how many follow; nothing where the messages would take longer than they save.

/** Multiply–adds from which a division pays. */
const LEAST_WORK = 2 ** 25;

/** Rows of a product from which a part of it pays for packing the whole right matrix. */
const LEAST_ROWS = 32;

/**
 * Columns from which a product pays for the copies; also keeps the kernel for a vector, which
 * rounds differently, out of it.
 */
const LEAST_COLS = 64;

export const plans = { matmul, convolve2d };

function matmul(threads, a, b, m, k, n) {
    if (m * k * n < LEAST_WORK || Math.min(k, n) < LEAST_COLS) {
        return;
    }
    return bands(m, threads, LEAST_ROWS).map(([from, to]) => ({
        values: [a.subarray(from * k, to * k), b, to - from, k, n],
        length: (to - from) * n,
    }));
}

function convolve2d(threads, input, kernel, options) {
    const { inputRows, inputCols, kernelRows, kernelCols, padding, strideRows = 1, strideCols = 1 } = options;
    const same = padding === 'same';
    const along = (size, window, stride) => Math.floor((size - (same ? 1 : window)) / stride) + 1;
    const rows = along(inputRows, kernelRows, strideRows);
    const cols = along(inputCols, kernelCols, strideCols);
    // Both at once would need other padding for each part.
    if (rows * cols * kernel.length < LEAST_WORK || (same && strideRows > 1)) {
        return;
    }
    // Where a part ends in the image, it reads more of it and has more rows than asked for, which
    // are skipped; padding stays where the image ends.
    const above = same ? (kernelRows - 1) >> 1 : 0;
    return bands(rows, threads, kernelRows).map(([from, to]) => {
        const first = Math.max(0, from * strideRows - above);
        const end = Math.min(inputRows, (to - 1) * strideRows - above + kernelRows);
        const values = input.subarray(first * inputCols, end * inputCols);
        return {
            values: [values, kernel, { ...options, inputRows: end - first }],
            skipped: same ? (from - first) * cols : 0,
            length: (to - from) * cols,
        };
    });
}

/** From which row to which each thread goes, in whole tiles of the kernels but for the last. */
function bands(rows, threads, least) {
    const tile = 8;
    const count = Math.min(threads, Math.floor(rows / Math.max(least, tile)));
    const edge = (i) => (i === count ? rows : Math.round((i * rows) / count / tile) * tile);
    return Array.from({ length: count }, (_, i) => [edge(i), edge(i + 1)]);
}
