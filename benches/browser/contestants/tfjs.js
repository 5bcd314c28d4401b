// TensorFlow.js on its WebAssembly back-end, with SIMD.

import { env, ready, setBackend } from '@tensorflow/tfjs-core';
import { setThreadsCount, setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
import { contestant } from './tfjs_ops.js';

export async function open({ threads }) {
  env().set('WASM_HAS_MULTITHREAD_SUPPORT', threads > 1);
  setWasmPaths('/tfjs/');
  setThreadsCount(threads);
  await setBackend('wasm');
  await ready();
  return contestant((tensor) => tensor.dataSync());
}
