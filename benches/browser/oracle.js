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
  softmaxRows: (x, [rows, cols]) => Float64Array.from(Array.from({ length: rows }, (_, row) => [...softmax(x.subarray(row * cols, (row + 1) * cols))]).flat()),
  matmul,
  conv,
  layer,
  perceptron,
  mlp,
};

// The right result, or of a product with `checkedRows` that many of its rows.
export function expected({ op, shapes, checkedRows }, inputs) {
  if (checkedRows === undefined) {
    return right[op](...inputs, ...shapes);
  }
  const [[m, k], b] = shapes;
  const a = rowsOf(inputs[0], m, checkedRows);
  return right[op](a, inputs[1], [checkedRows, k], b);
}

// What there is of a result to compare with `expected`.
export function checked({ shapes: [[m]], checkedRows }, result) {
  return checkedRows === undefined ? result : rowsOf(result, m, checkedRows);
}

// Rows at equal distances of a matrix of `m`, the last one included.
function rowsOf(matrix, m, count) {
  const length = matrix.length / m;
  const rows = new Float32Array(count * length);
  for (let i = 0; i < count; i++) {
    const start = Math.round((i * (m - 1)) / (count - 1)) * length;
    rows.set(matrix.subarray(start, start + length), i * length);
  }
  return rows;
}

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

function layer(input, weights, [, channels, rows, cols], [filters, , side]) {
  const [height, width] = [rows - side + 1, cols - side + 1];
  const value = (at) => {
    const [filter, row, col] = [Math.floor(at / (height * width)), Math.floor(at / width) % height, at % width];
    let sum = 0;
    for (let channel = 0; channel < channels; channel++) {
      for (let tap = 0; tap < side * side; tap++) {
        const [y, x] = [row + Math.floor(tap / side), col + (tap % side)];
        sum += input[(channel * rows + y) * cols + x] * weights[(filter * channels + channel) * side * side + tap];
      }
    }
    return sum;
  };
  return Float64Array.from({ length: filters * height * width }, (_, at) => value(at));
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

function perceptron(x, w1, b1, w2, b2, ...shapes) {
  const [[batch, inputs], [, hidden], , [, outputs]] = shapes;
  const biased = (values, bias) => values.map((value, i) => value + bias[i % bias.length]);
  const first = biased(matmul(x, w1, [batch, inputs], [inputs, hidden]), b1).map((value) => Math.max(value, 0));
  return biased(matmul(first, w2, [batch, hidden], [hidden, outputs]), b2);
}

function mlp(x, w1, w2, rows, first, second) {
  const hidden = plain.gelu([matmul(x, w1, rows, first)], []);
  return matmul(hidden, w2, [rows[0], first[1]], second);
}
