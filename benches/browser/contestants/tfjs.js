// TensorFlow.js on its WebAssembly back-end, with SIMD.

import { env, ready, setBackend, tensor, tidy } from '@tensorflow/tfjs-core';
import { add, conv2d, erf, matMul, mul, relu, sigmoid, softmax, sum } from '@tensorflow/tfjs-core';
import { setThreadsCount, setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
import { SCALE } from '../rows.js';

const ops = {
  relu,
  sigmoid,
  softmax,
  sum,
  gelu: (x) => mul(mul(x, 0.5), add(erf(mul(x, Math.SQRT1_2)), 1)),
  matmul: (a, b) => matMul(a, b),
  conv: (input, kernel) => conv2d(input, kernel, 1, 'valid'),
  chain: (x, bias) => add(mul(relu(x), SCALE), bias),
};

export async function open({ threads }) {
  env().set('WASM_HAS_MULTITHREAD_SUPPORT', threads > 1);
  setWasmPaths('/tfjs/');
  setThreadsCount(threads);
  await setBackend('wasm');
  await ready();
  return { endToEnd, resident };
}

function endToEnd({ op, shapes }, inputs) {
  const dims = op === 'conv' ? channelLast(shapes) : shapes;
  return {
    run() {
      const result = tidy(() => ops[op](...inputs.map((input, i) => tensor(input, dims[i]))));
      // Not inside: `tidy` looks for tensors in every value of an array that it is to return.
      const values = result.dataSync();
      result.dispose();
      return values;
    },
  };
}

// Images are batch × rows × columns × channels, kernels rows × columns × channels in × out.
const channelLast = ([input, kernel]) => [[1, ...input, 1], [...kernel, 1, 1]];

function resident({ op, shapes }, inputs) {
  let [x, bias] = inputs.map((input, i) => tensor(input, shapes[i]));
  return {
    step() {
      const next = tidy(() => ops[op](x, bias));
      x.dispose();
      x = next;
    },
    read: () => x.dataSync(),
    close: () => [x, bias].forEach((kept) => kept.dispose()),
  };
}
