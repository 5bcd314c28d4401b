// What devices with threads do, case by case.

import { abortLater, codeOf, create, watchWorkers } from './workers-tools.js';

// Large enough to be divided, but for the last two convolutions: of one, the parts would be hardly
// larger than its kernel; of the other, each would need padding of its own. What is large twice has the
// place of its first result once more.
const PRODUCTS = [
  [1024, 1024, 256], [1024, 1024, 256], [257, 1024, 1025], [300, 3500, 256], [512, 1025, 513], [256, 4200, 256], [700, 256, 2050],
];
const CONVOLUTIONS = [
  { inputRows: 840, inputCols: 801, kernelRows: 15, kernelCols: 15, padding: 'valid' },
  { inputRows: 840, inputCols: 801, kernelRows: 15, kernelCols: 14, padding: 'same' },
  { inputRows: 1001, inputCols: 1000, kernelRows: 16, kernelCols: 9, padding: 'same', strideCols: 1 },
  { inputRows: 1700, inputCols: 1701, kernelRows: 13, kernelCols: 15, strideRows: 2, strideCols: 2 },
  { inputRows: 1200, inputCols: 1001, kernelRows: 8, kernelCols: 31, padding: 'same', strideCols: 2 },
  { inputRows: 60, inputCols: 9000, kernelRows: 33, kernelCols: 9, padding: 'same' },
  { inputRows: 1200, inputCols: 1201, kernelRows: 15, kernelCols: 15, padding: 'same', strideRows: 2 },
];

// Whether devices with threads compute what one thread does, bit by bit, and what their helpers
// were given of each operation by the page.
export async function threads(relampago) {
  await relampago.default();
  const alone = await relampago.GpuDevice.create({ backend: 'simd' });
  const expected = (await large(alone)).results;
  const workers = watchWorkers();
  const outcomes = [];
  for (const options of [{ threads: 2 }, { threads: 3 }, { threads: 5 }, { threads: 3, worker: true }]) {
    const device = await relampago.GpuDevice.create({ backend: 'simd', ...options });
    const { results, given } = await large(device, workers);
    const { worker, threads: count } = device.info;
    outcomes.push({ options, different: differences(results, expected), given, info: { worker, threads: count } });
    device.dispose();
  }
  return { isolated: crossOriginIsolated, outcomes };
}

async function large(device, workers = []) {
  const calls = [
    ...PRODUCTS.map(([m, k, n], i) => () => device.matmul(special(noise(m * k, 1), i), noise(k * n, 2 + i), m, k, n)),
    ...CONVOLUTIONS.map((options, i) => () => {
      const input = special(noise(options.inputRows * options.inputCols, 13), i);
      const kernel = noise(options.kernelRows * options.kernelCols, 14);
      // Every other one inherits its options.
      return device.convolve2d(input, kernel, i % 2 ? Object.create(options) : options);
    }),
  ];
  const runs = () => workers.reduce((sum, worker) => sum + worker.runs, 0);
  const [results, given] = [[], []];
  for (const call of calls) {
    const before = runs();
    results.push(await call());
    given.push(runs() - before);
  }
  return { results, given };
}

// Every other call has values that are not finite.
function special(values, i) {
  return i % 2 ? values : Object.assign(values, { 3: NaN, 5: -0, [values.length >> 1]: -Infinity });
}

// How many values of each result differ.
function differences(results, expected) {
  return results.map((values, i) => {
    const [a, b] = [values, expected[i]].map(({ buffer }) => new Uint32Array(buffer));
    return a.length === b.length ? a.reduce((sum, bits, j) => sum + (bits !== b[j]), 0) : 'another length';
  });
}

// The lengths of products with threads, on the page and in a worker that has workers of its own.
export async function nested(relampago) {
  await relampago.default();
  const lengths = [];
  for (const worker of [false, true]) {
    const device = await relampago.GpuDevice.create({ backend: 'simd', threads: 2, worker });
    const matrix = noise(768 * 768, 1);
    lengths.push((await device.matmul(matrix, matrix, 768, 768, 768)).length);
    device.dispose();
  }
  return lengths;
}

// A helper's end is an error for what it was doing; after that the device goes on alone.
export async function helperCrash(relampago) {
  await relampago.default();
  const workers = watchWorkers();
  const device = await relampago.GpuDevice.create({ backend: 'simd', threads: 2 });
  const side = 768;
  const matrix = noise(side * side, 1);
  const pending = codeOf(relampago, () => device.matmul(matrix, matrix, side, side, side));
  workers[0].dispatchEvent(new ErrorEvent('error', { message: 'a failure' }));
  const code = await pending;
  const { length } = await device.matmul(matrix, matrix, side, side, side);
  return { code, length };
}

export async function threadsAbort(relampago) {
  await relampago.default();
  const device = await relampago.GpuDevice.create({ backend: 'simd', threads: 2 });
  const side = 768;
  const matrix = noise(side * side, 1);
  const call = (options) => device.matmul(matrix, matrix, side, side, side, options);
  const code = (action) => codeOf(relampago, action);
  return [
    await code(() => call({ signal: AbortSignal.abort() })),
    await code(() => abortLater(call)),
    await code(() => call({ signal: 'now' })),
    await code(() => call({})),
    await code(() => device.matmul(matrix, matrix, side, side, side + 1)),
    await code(() => { device.dispose(); return call(); }),
  ];
}

// Values without a pattern, the same every time.
function noise(length, seed) {
  let state = seed;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return state / 2 ** 31;
  });
}
