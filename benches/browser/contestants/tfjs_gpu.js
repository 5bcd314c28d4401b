// TensorFlow.js on its WebGPU back-end.

import { ready, setBackend } from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-webgpu';
import { contestant } from './tfjs_ops.js';

export async function open() {
  if (!(await setBackend('webgpu'))) {
    throw new Error('tfjs has no back-end webgpu here');
  }
  await ready();
  return contestant((tensor) => tensor.data());
}
