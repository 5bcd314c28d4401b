// The package as it is installed, on WebAssembly SIMD or on a GPU.

import { SCALE } from '../rows.js';

const calls = {
  relu: (device, [x], _, options) => device.relu(x, options),
  gelu: (device, [x]) => device.gelu(x),
  sigmoid: (device, [x]) => device.sigmoid(x),
  softmax: (device, [x], _, options) => device.softmax(x, options),
  sum: (device, [x]) => device.sum(x),
  matmul: (device, [a, b], [[m, k], [, n]]) => device.matmul(a, b, m, k, n),
  conv: (device, [input, kernel], [[inputRows, inputCols], [kernelRows, kernelCols]]) =>
    device.convolve2d(input, kernel, { inputRows, inputCols, kernelRows, kernelCols }),
};

export async function open({ build, backend, halves, threads }) {
  const { default: init, GpuDevice } = await import('relampago');
  await init(`/relampago/relampago_${build}.wasm`);
  if (halves) {
    return inHalves(await GpuDevice.create({ backend, halfPrecision: true }));
  }
  const device = await GpuDevice.create(backend ? { backend } : { backend: 'simd', threads });
  return {
    endToEnd: (row, inputs, into) =>
      calls[row.op] ? endToEnd(device, row, inputs, into && { into }) : compiled(device, row, inputs, into),
    resident: (row, inputs) => repeated(device, row, inputs),
  };
}

// Products alone, if they are computed so here.
const inHalves = (device) => {
  const suits = ({ op }) => op === 'matmul' && device.info.halfPrecision === 'used';
  return {
    endToEnd: (row, inputs) => suits(row) && endToEnd(device, row, inputs),
    resident: (row, inputs) => suits(row) && repeated(device, row, inputs),
  };
};

const endToEnd = (device, { op, shapes }, inputs, options) =>
  ({ run: () => calls[op](device, inputs, shapes, options) });

// Steps of a program in one call, which a GPU gets in one submission.
async function repeated(device, { op, shapes, alike }, inputs) {
  const buffers = await Promise.all(inputs.map((input) => device.upload(input)));
  const batch = device.batch();
  const program = await batch.compile([recorded[op](batch, inputs.map(({ length }) => batch.placeholder(length)), shapes)]);
  if (alike) {
    return onTheSame(batch, program, buffers);
  }
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

// Each step has the same arguments: results of results would become too small to be normal numbers.
function onTheSame(batch, program, buffers) {
  let last;
  return {
    async steps(count) {
      for (let i = 0; i < count; i++) {
        last?.dispose();
        [last] = await program.run(buffers);
      }
    },
    read: () => (last ?? buffers[0]).read(),
    close: () => [last, ...buffers, program, batch].forEach((kept) => kept?.dispose()),
  };
}

// What takes more than one operation is a program, which has the weights.
async function compiled(device, { op, shapes, weights = shapes.length }, inputs, into) {
  const batch = device.batch();
  const given = inputs.slice(0, weights);
  const kept = inputs.slice(weights).map((values) => batch.upload(values));
  const ids = [...given.map(({ length }) => batch.placeholder(length)), ...kept];
  const program = await batch.compile([recorded[op](batch, ids, shapes)]);
  const options = into && { into: [into] };
  return {
    run: async () => (await program.read(given, options))[0],
    close: () => [program, batch].forEach((held) => held.dispose()),
  };
}

const recorded = {
  relu: (batch, [x]) => batch.relu(x),
  gelu: (batch, [x]) => batch.gelu(x),
  softmaxRows: (batch, [x], [[rows, cols]]) => batch.softmaxRows(x, rows, cols),
  layer: (batch, [input, weights], [[, channels, inputRows, inputCols], [filters, , kernelRows, kernelCols]]) =>
    batch.convolveLayer(input, weights, { channels, inputRows, inputCols, filters, kernelRows, kernelCols }),
  matmul: (batch, [a, b], [[m, k], [, n]]) => batch.matmul(a, b, m, k, n),
  chain: (batch, [x, bias]) => batch.vecAdd(batch.scale(batch.relu(x), SCALE), bias),
  perceptron(batch, [x, w1, b1, w2, b2], [[rows, inputs], [, hidden], , [, outputs]]) {
    const first = batch.biasAdd(batch.matmul(x, w1, rows, inputs, hidden), b1, rows, hidden);
    return batch.biasAdd(batch.matmul(batch.relu(first), w2, rows, hidden, outputs), b2, rows, outputs);
  },
  mlp(batch, [x, w1, w2], [[rows, inputs], [, hidden], [, outputs]]) {
    const first = batch.gelu(batch.matmul(x, w1, rows, inputs, hidden));
    return batch.matmul(first, w2, rows, hidden, outputs);
  },
};

