// The package as it is installed, on WebAssembly SIMD or on a GPU.

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

export async function open({ build, backend, threads }) {
  await init(`/relampago/relampago_${build}.wasm`);
  const device = await GpuDevice.create(backend ? { backend } : { backend: 'simd', threads });
  return {
    endToEnd: (row, inputs) => row.weights ? weighted(device, row, inputs) : endToEnd(device, row, inputs),
    resident: (row, inputs) => backend ? repeated(device, row, inputs) : resident(device, inputs),
  };
}

const endToEnd = (device, { op, shapes }, inputs) => ({ run: () => calls[op](device, inputs, shapes) });

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

// Steps of a program, which a GPU gets in one submission.
async function repeated(device, { op, shapes }, inputs) {
  const buffers = await Promise.all(inputs.map((input) => device.upload(input)));
  const batch = device.batch();
  const program = await batch.compile([recorded[op](batch, inputs.map(({ length }) => batch.placeholder(length)), shapes)]);
  return {
    async steps(count) {
      const [next] = await program.runN(buffers, count, [[0, 0]]);
      buffers[0].dispose();
      buffers[0] = next;
    },
    read: () => buffers[0].read(),
    close: () => [...buffers, program, batch].forEach((kept) => kept.dispose()),
  };
}

// A program that has all inputs but the first.
async function weighted(device, { op, shapes }, [x, ...weights]) {
  const batch = device.batch();
  const inputs = [batch.placeholder(x.length), ...weights.map((values) => batch.upload(values))];
  const program = await batch.compile([recorded[op](batch, inputs, shapes)]);
  return {
    run: async () => (await program.read([x]))[0],
    close: () => [program, batch].forEach((kept) => kept.dispose()),
  };
}

const recorded = {
  relu: (batch, [x]) => batch.relu(x),
  matmul: (batch, [a, b], [[m, k], [, n]]) => batch.matmul(a, b, m, k, n),
  chain: (batch, [x, bias]) => record(batch, x, bias),
  perceptron(batch, [x, w1, b1, w2, b2], [[rows, inputs], [, hidden], , [, outputs]]) {
    const first = batch.biasAdd(batch.matmul(x, w1, rows, inputs, hidden), b1, rows, hidden);
    return batch.biasAdd(batch.matmul(batch.relu(first), w2, rows, hidden, outputs), b2, rows, outputs);
  },
};

const record = (batch, x, bias) => batch.vecAdd(batch.scale(batch.relu(x), SCALE), bias);
