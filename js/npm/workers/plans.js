// How large operations are divided by rows. A plan takes the number of threads and an operation's
// arguments, which are right, and gives each thread's, how many values of its result are skipped,
// and how many follow; nothing where the messages would take longer than they save.

import { part } from '../core.js';

// Measured with two threads. Elementwise operations are never among them: two copies of a value
// take longer than any function of it.

/** Multiply–adds of a product, and rows and columns of its matrices, from which division pays. */
const LEAST_PRODUCT = 2 ** 25;
const LEAST_SIDE = 256;

/** Multiply–adds of a convolution, and values of its kernel. */
const LEAST_CONVOLUTION = 2 ** 25;
const LEAST_TAPS = 121;

/** Rows of a part of a product from which it pays for packing the whole right matrix. */
const LEAST_ROWS = 32;

export const plans = { matmul, convolve2d };

function matmul(threads, a, b, m, k, n) {
    if (m * k * n < LEAST_PRODUCT || Math.min(m, k, n) < LEAST_SIDE) {
        return;
    }
    return bands(m, threads, LEAST_ROWS).map(([from, to]) => ({
        values: [part(a, from * k, (to - from) * k), b, to - from, k, n],
        length: (to - from) * n,
    }));
}

function convolve2d(threads, input, kernel, options) {
    const { inputRows, inputCols, kernelRows, kernelCols, padding, strideRows = 1, strideCols = 1 } = options;
    // Inherited ones, too.
    const all = { inputCols, kernelRows, kernelCols, padding, strideRows, strideCols };
    const same = padding === 'same';
    const along = (size, window, stride) => Math.floor((size - (same ? 1 : window)) / stride) + 1;
    const rows = along(inputRows, kernelRows, strideRows);
    const cols = along(inputCols, kernelCols, strideCols);
    if (rows * cols * kernel.length < LEAST_CONVOLUTION || kernel.length < LEAST_TAPS) {
        return;
    }
    if (same && strideRows > 1) {
        return; // Each part would need padding of its own.
    }
    // Where a part ends in the image, it reads more of it and has more rows than asked for, which
    // are skipped; padding stays where the image ends.
    const above = same ? (kernelRows - 1) >> 1 : 0;
    return bands(rows, threads, kernelRows).map(([from, to]) => {
        const first = Math.max(0, from * strideRows - above);
        const end = Math.min(inputRows, (to - 1) * strideRows - above + kernelRows);
        const values = part(input, first * inputCols, (end - first) * inputCols);
        return {
            values: [values, kernel, { ...all, inputRows: end - first }],
            skipped: same ? (from - first) * cols : 0,
            length: (to - from) * cols,
        };
    });
}

/** From which row to which each thread goes, in whole tiles of the kernels but for the last. */
function bands(rows, threads, least) {
    const tile = 24;
    const count = Math.min(threads, Math.floor(rows / Math.max(least, tile)));
    const edge = (i) => (i === count ? rows : Math.round((i * rows) / count / tile) * tile);
    return Array.from({ length: count }, (_, i) => [edge(i), edge(i + 1)]);
}
