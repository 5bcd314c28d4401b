// onnxruntime-web: a model for each row. Tensors of its WebAssembly back-end live in JavaScript
// between runs, so it has no resident row.

import * as ort from 'onnxruntime-web/wasm';
import { SCALE } from '../rows.js';
import { model } from '../onnx.js';

const nodes = {
  relu: [['Relu', ['x0'], 'y']],
  gelu: [['Gelu', ['x0'], 'y']],
  sigmoid: [['Sigmoid', ['x0'], 'y']],
  softmax: [['Softmax', ['x0'], 'y']],
  sum: [['ReduceSum', ['x0'], 'y']],
  matmul: [['MatMul', ['x0', 'x1'], 'y']],
  conv: [['Conv', ['x0', 'x1'], 'y']],
  chain: [
    ['Relu', ['x0'], 'positive'],
    ['Mul', ['positive', 'scale'], 'scaled'],
    ['Add', ['scaled', 'x1'], 'y'],
  ],
};

export async function open({ threads }) {
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = { mjs: '/ort/glue.js', wasm: '/ort/ort.wasm' };
  return { endToEnd };
}

async function endToEnd({ op, shapes }, inputs) {
  const dims = op === 'conv' ? shapes.map((shape) => [1, 1, ...shape]) : shapes;
  const bytes = model(nodes[op], {
    inputs: dims.map((shape, i) => [`x${i}`, shape]),
    output: 'y',
    constants: op === 'chain' ? [['scale', SCALE]] : [],
  });
  const session = await ort.InferenceSession.create(bytes);
  return {
    async run() {
      const tensors = inputs.map((input, i) => [`x${i}`, new ort.Tensor('float32', input, dims[i])]);
      const { y } = await session.run(Object.fromEntries(tensors));
      return y.data;
    },
    close: () => session.release(),
  };
}
