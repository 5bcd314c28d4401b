// The right answers, in plain JavaScript doubles: no code in common with the package.

import { erf } from '../app/tensors-oracle.js';

const each = (f) => ([x], parameters) => Array.from(x, (value) => f(value, ...parameters));
const pairs = (f) => ([a, b]) => Array.from(a, (value, i) => f(value, b[i]));
const total = (values) => values.reduce((sum, value) => sum + value, 0);

export const oracle = {
  relu: each((x) => Math.max(x, 0)),
  leakyRelu: each((x, slope) => (x >= 0 ? x : slope * x)),
  elu: each((x, alpha) => (x > 0 ? x : alpha * Math.expm1(x))),
  sigmoid: each((x) => 1 / (1 + Math.exp(-x))),
  tanh: each(Math.tanh),
  swish: each((x) => x / (1 + Math.exp(-x))),
  gelu: each((x) => (x / 2) * (1 + erf(x / Math.SQRT2))),
  geluTanh: each((x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))),
  clip: each((x, min, max) => Math.min(Math.max(x, min), max)),
  exp: each(Math.exp),
  log: each(Math.log),
  sqrt: each(Math.sqrt),
  abs: each(Math.abs),
  neg: each((x) => -x),
  scale: each((x, factor) => x * factor),
  vecAdd: pairs((a, b) => a + b),
  sub: pairs((a, b) => a - b),
  mul: pairs((a, b) => a * b),
  div: pairs((a, b) => a / b),
  minimum: pairs(Math.min),
  maximum: pairs(Math.max),
  biasAdd: ([x, bias], [, cols]) => Array.from(x, (value, i) => value + bias[i % cols]),
  softmax: ([x]) => softmax(Array.from(x)),
  logSoftmax: ([x]) => softmax(Array.from(x)).map(Math.log),
  softmaxRows: ([x], [, cols]) => byRows(x, cols).flatMap(softmax),
  logSoftmaxRows: ([x], [, cols]) => byRows(x, cols).flatMap(softmax).map(Math.log),
  matmul,
  transpose: ([x], [rows, cols]) => Array.from(x, (_, i) => x[(i % rows) * cols + Math.floor(i / rows)]),
  convolve2d,
  dot: ([a, b]) => total(Array.from(a, (value, i) => value * b[i])),
  sum: ([x]) => total(Array.from(x)),
  max: ([x]) => Math.max(...x),
  min: ([x]) => Math.min(...x),
  mean: ([x]) => total(Array.from(x)) / x.length,
  argmax: ([x]) => x.indexOf(Math.max(...x)),
};

function softmax(row) {
  const powers = row.map((x) => Math.exp(x - Math.max(...row)));
  return powers.map((power) => power / total(powers));
}

function byRows(x, cols) {
  return Array.from({ length: x.length / cols }, (_, row) => Array.from(x.subarray(row * cols, (row + 1) * cols)));
}

function matmul([a, b], [m, k, n]) {
  const entry = (row, col) => total(Array.from({ length: k }, (_, i) => a[row * k + i] * b[i * n + col]));
  return Array.from({ length: m * n }, (_, i) => entry(Math.floor(i / n), i % n));
}

function convolve2d([input, kernel], [options]) {
  const { inputRows, inputCols, kernelRows, kernelCols, padding, strideRows = 1, strideCols = 1 } = options;
  const down = windows(inputRows, kernelRows, strideRows, padding);
  const right = windows(inputCols, kernelCols, strideCols, padding);
  const at = (row, col) =>
    row >= 0 && row < inputRows && col >= 0 && col < inputCols ? input[row * inputCols + col] : 0;
  const covered = (top, left) =>
    total(Array.from(kernel, (weight, i) => weight * at(top + Math.floor(i / kernelCols), left + (i % kernelCols))));
  return down.flatMap((top) => right.map((left) => covered(top, left)));
}

// Where each window begins along one axis. What "same" cannot share evenly goes to the end.
function windows(input, kernel, stride, padding) {
  const same = padding === 'same';
  const count = same ? Math.ceil(input / stride) : Math.floor((input - kernel) / stride) + 1;
  const before = same ? Math.floor(Math.max((count - 1) * stride + kernel - input, 0) / 2) : 0;
  return Array.from({ length: count }, (_, i) => i * stride - before);
}
