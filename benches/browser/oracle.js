// The right results, in doubles.

import { oracle as plain } from '../../pkg-tests/support/oracle.mjs';
import { SCALE } from './rows.js';

const right = {
  relu: (x) => plain.relu([x], []),
  gelu: (x) => plain.gelu([x], []),
  sigmoid: (x) => plain.sigmoid([x], []),
  sum: (x) => [plain.sum([x])],
  chain: (x, bias) => Float64Array.from(x, (value, i) => Math.max(value, 0) * SCALE + bias[i]),
  softmax,
  matmul,
  conv,
};

export const expected = ({ op, shapes }, inputs) => right[op](...inputs, ...shapes);

// The largest error, relative to the largest right value.
export function errorOf(got, want) {
  if (got.length !== want.length) {
    return Infinity;
  }
  let [error, largest] = [0, 0];
  for (let i = 0; i < want.length; i++) {
    const difference = Math.abs(got[i] - want[i]);
    // Not `Math.max` of differences alone: a NaN has to count as wrong.
    error = difference <= error ? error : Number.isNaN(difference) ? Infinity : difference;
    largest = Math.max(largest, Math.abs(want[i]));
  }
  return error / largest;
}

function softmax(x) {
  const max = x.reduce((a, b) => Math.max(a, b));
  const powers = Float64Array.from(x, (value) => Math.exp(value - max));
  const total = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / total);
}

function matmul(a, b, [m, k], [, n]) {
  const c = new Float64Array(m * n);
  for (let row = 0; row < m; row++) {
    const out = c.subarray(row * n, (row + 1) * n);
    for (let i = 0; i < k; i++) {
      const factor = a[row * k + i];
      for (let col = 0; col < n; col++) {
        out[col] += factor * b[i * n + col];
      }
    }
  }
  return c;
}

function conv(input, kernel, [inputRows, inputCols], [kernelRows, kernelCols]) {
  const [rows, cols] = [inputRows - kernelRows + 1, inputCols - kernelCols + 1];
  const covered = (top, left) =>
    kernel.reduce((sum, weight, i) => {
      const row = top + Math.floor(i / kernelCols);
      return sum + weight * input[row * inputCols + left + (i % kernelCols)];
    }, 0);
  return Float64Array.from({ length: rows * cols }, (_, i) => covered(Math.floor(i / cols), i % cols));
}
