// onnxruntime-web: a model for each row. Tensors of its WebAssembly back-end live in JavaScript
// between runs, so it has no resident row.

import * as ort from 'onnxruntime-web/wasm';
import { dimensions, modelOf } from './ort_nodes.js';

export async function open({ threads }) {
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = { mjs: '/ort/glue.js', wasm: '/ort/ort.wasm' };
  return { endToEnd };
}

async function endToEnd(row, inputs) {
  const dims = dimensions(row);
  const given = inputs.slice(0, row.weights);
  const session = await ort.InferenceSession.create(modelOf(row, inputs.slice(given.length)));
  return {
    async run() {
      const tensors = given.map((input, i) => [`x${i}`, new ort.Tensor('float32', input, dims[i])]);
      const { y } = await session.run(Object.fromEntries(tensors));
      return y.data;
    },
    close: () => session.release(),
  };
}
