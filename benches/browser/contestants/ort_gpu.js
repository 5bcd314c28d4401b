// onnxruntime-web on WebGPU: a model for each row. Resident values are in buffers of the
// device that ort opened.

import * as ort from 'onnxruntime-web/webgpu';
import { dimensions, modelOf } from './ort_nodes.js';

export async function open() {
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = { mjs: '/ort/gpu_glue.js', wasm: '/ort/ort_gpu.wasm' };
  return { endToEnd, resident };
}

const create = (row, options = {}) =>
  ort.InferenceSession.create(modelOf(row), { executionProviders: ['webgpu'], ...options });

async function endToEnd(row, inputs) {
  const session = await create(row);
  const dims = dimensions(row);
  const kept = [];
  // Inputs from `first` on stay on the device where the row has weights.
  const first = row.weights ?? inputs.length;
  for (let i = first; i < inputs.length; i++) {
    kept.push([`x${i}`, await upload(inputs[i], dims[i])]);
  }
  return {
    async run() {
      const given = inputs.slice(0, first).map((input, i) => [`x${i}`, new ort.Tensor('float32', input, dims[i])]);
      const { y } = await session.run(Object.fromEntries([...given, ...kept]));
      return y.data;
    },
    close: () => session.release(),
  };
}

async function upload(values, dims) {
  const device = await ort.env.webgpu.device;
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const buffer = device.createBuffer({ size: values.byteLength, usage });
  device.queue.writeBuffer(buffer, 0, values);
  return ort.Tensor.fromGpuBuffer(buffer, { dataType: 'float32', dims, dispose: () => buffer.destroy() });
}

async function resident(row, inputs) {
  const session = await create(row, { preferredOutputLocation: 'gpu-buffer' });
  const dims = dimensions(row);
  const tensors = await Promise.all(inputs.map((input, i) => upload(input, dims[i])));
  return {
    async step() {
      const { y } = await session.run(Object.fromEntries(tensors.map((tensor, i) => [`x${i}`, tensor])));
      tensors[0].dispose();
      tensors[0] = y;
    },
    read: () => download(tensors[0]),
    async close() {
      tensors.forEach((tensor) => tensor.dispose());
      await session.release();
    },
  };
}

// `getData` would keep its copy in the tensor, which could not be an input again.
async function download({ gpuBuffer, dims }) {
  const device = await ort.env.webgpu.device;
  const size = 4 * dims.reduce((product, side) => product * side, 1);
  const staging = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(gpuBuffer, 0, staging, 0, size);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  const values = new Float32Array(staging.getMappedRange().slice(0));
  staging.destroy();
  return values;
}
