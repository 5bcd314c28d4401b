// What TensorFlow.js does in each row, on any back-end. `read` brings a tensor's values.

import { tensor, tidy } from '@tensorflow/tfjs-core';
import { add, conv2d, erf, fused, matMul, mul, relu, sigmoid, softmax, sum } from '@tensorflow/tfjs-core';
import { SCALE } from '../rows.js';

const gelu = (x) => mul(mul(x, 0.5), add(erf(mul(x, Math.SQRT1_2)), 1));

const ops = {
  relu,
  sigmoid,
  softmax,
  sum,
  gelu,
  matmul: (a, b) => matMul(a, b),
  conv: (input, kernel) => conv2d(input, kernel, 1, 'valid'),
  chain: (x, bias) => add(mul(relu(x), SCALE), bias),
  perceptron: (x, w1, b1, w2, b2) =>
    fused.matMul({ a: fused.matMul({ a: x, b: w1, bias: b1, activation: 'relu' }), b: w2, bias: b2 }),
  mlp: (x, w1, w2) => matMul(gelu(matMul(x, w1)), w2),
};

export function contestant(read) {
  return {
    endToEnd: (row, inputs) => (row.weights ? weighted : endToEnd)(read, row, inputs),
    resident: (row, inputs) => resident(read, row, inputs),
  };
}

function endToEnd(read, { op, shapes }, inputs) {
  const dims = op === 'conv' ? channelLast(shapes) : shapes;
  return { run: () => consume(read, tidy(() => ops[op](...inputs.map((input, i) => tensor(input, dims[i]))))) };
}

// Images are batch × rows × columns × channels, kernels rows × columns × channels in × out.
const channelLast = ([input, kernel]) => [[1, ...input, 1], [...kernel, 1, 1]];

// Not inside `tidy`, which looks for tensors in every value of an array that it is to return.
function consume(read, result) {
  const values = read(result);
  if (values instanceof Promise) {
    return values.finally(() => result.dispose());
  }
  result.dispose();
  return values;
}

// All inputs but the first stay on the device.
function weighted(read, { op, shapes }, inputs) {
  const [, ...weights] = inputs.map((input, i) => tensor(input, shapes[i]));
  return {
    run: () => consume(read, tidy(() => ops[op](tensor(inputs[0], shapes[0]), ...weights))),
    close: () => weights.forEach((kept) => kept.dispose()),
  };
}

function resident(read, { op, shapes }, inputs) {
  let [x, ...rest] = inputs.map((input, i) => tensor(input, shapes[i]));
  return {
    step() {
      const next = tidy(() => ops[op](x, ...rest));
      x.dispose();
      x = next;
    },
    read: () => read(x),
    close: () => [x, ...rest].forEach((kept) => kept.dispose()),
  };
}
