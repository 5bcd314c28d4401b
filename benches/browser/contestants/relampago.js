// The package as it is installed, on WebAssembly SIMD.

import init, { GpuDevice } from 'relampago';
import { SCALE } from '../rows.js';

const calls = {
  relu: (device, [x]) => device.relu(x),
  gelu: (device, [x]) => device.gelu(x),
  sigmoid: (device, [x]) => device.sigmoid(x),
  softmax: (device, [x]) => device.softmax(x),
  sum: (device, [x]) => device.sum(x),
  matmul: (device, [a, b], [[m, k], [, n]]) => device.matmul(a, b, m, k, n),
  conv: (device, [input, kernel], [[inputRows, inputCols], [kernelRows, kernelCols]]) =>
    device.convolve2d(input, kernel, { inputRows, inputCols, kernelRows, kernelCols }),
  chain,
};

export async function open({ build, threads }) {
  await init(`/relampago/relampago_${build}.wasm`);
  const device = await GpuDevice.create({ backend: 'simd', threads });
  return {
    endToEnd: ({ op, shapes }, inputs) => ({ run: () => calls[op](device, inputs, shapes) }),
    resident: (_, inputs) => resident(device, inputs),
  };
}

async function chain(device, [x, bias]) {
  const batch = device.batch();
  const result = record(batch, batch.upload(x), batch.upload(bias));
  await batch.execute();
  const values = await batch.read(result);
  batch.dispose();
  return values;
}

async function resident(device, inputs) {
  let [x, bias] = await Promise.all(inputs.map((input) => device.upload(input)));
  return {
    async step() {
      const batch = device.batch();
      const result = record(batch, batch.input(x), batch.input(bias));
      await batch.execute();
      x.dispose();
      x = batch.keep(result);
      batch.dispose();
    },
    read: () => x.read(),
    close: () => [x, bias].forEach((buffer) => buffer.dispose()),
  };
}

const record = (batch, x, bias) => batch.vecAdd(batch.scale(batch.relu(x), SCALE), bias);
