// What devices with threads do, case by case.

import { abortLater, codeOf, watchWorkers } from './workers-tools.js';

const SIDE = 768;
const PRODUCTS = [[1024, 1024, 256], [257, 1024, 1025], [300, 3500, 256], [512, 1025, 513], [2, 4096, 4096], [4096, 4096, 1]];
const CONVOLUTIONS = [
  { inputRows: 840, inputCols: 801, kernelRows: 15, kernelCols: 14, padding: 'same' },
  { inputRows: 1001, inputCols: 1000, kernelRows: 16, kernelCols: 9, padding: 'same', strideCols: 1 },
  { inputRows: 1700, inputCols: 1701, kernelRows: 13, kernelCols: 15, strideRows: 2, strideCols: 2 },
  { inputRows: 1200, inputCols: 1201, kernelRows: 15, kernelCols: 15, padding: 'same', strideRows: 2 },
];
const LONG = 1_000_003;

// Whether devices with threads compute what one thread does, bit by bit, and what they say of themselves.
export async function threads(relampago) {
  await relampago.default();
  const create = (options) => relampago.GpuDevice.create({ backend: 'simd', ...options });
  const alone = await create();
  const expected = await everything(alone);
  const outcomes = [];
  for (const options of [{ threads: 2 }, { threads: 3 }, { threads: 5 }, { threads: 'auto' }, { threads: 3, worker: true }]) {
    const device = await create(options);
    const results = await everything(device);
    const { worker, threads: count, threadsReason } = device.info;
    outcomes.push({ options, different: differences(results, expected), info: { worker, threads: count }, threadsReason });
    device.dispose();
  }
  const { hardwareConcurrency } = globalThis.navigator ?? {};
  return { hardwareConcurrency, outcomes };
}

// Results of operations that threads divide: from arrays, in batches and programs, and by tensors.
async function everything(device) {
  return [...await single(device), ...await recorded(device), ...await tensors(device)];
}

async function single(device) {
  const results = [];
  for (const [i, [m, k, n]] of PRODUCTS.entries()) {
    results.push(await device.matmul(special(noise(m * k, 1), i), noise(k * n, 2 + i), m, k, n));
  }
  for (const [i, options] of CONVOLUTIONS.entries()) {
    const input = special(noise(options.inputRows * options.inputCols, 13), i);
    const kernel = noise(options.kernelRows * options.kernelCols, 14);
    // Every other one inherits its options.
    results.push(await device.convolve2d(input, kernel, i % 2 ? Object.create(options) : options));
  }
  results.push(await device.gelu(noise(LONG, 3)), await device.relu(noise(7, 4)));
  return results;
}

async function recorded(device) {
  const x = await device.upload(noise(LONG - 3, 5));
  const batch = device.batch();
  const input = batch.input(x);
  const activated = batch.tanh(batch.gelu(input));
  const results = [batch.softmaxRows(activated, 1000, 1000), batch.sum(activated), batch.argmaxRows(activated, 1000, 1000)];
  await batch.execute();
  const read = [];
  for (const id of results) {
    read.push(await batch.read(id));
  }
  const recording = device.batch();
  const place = recording.placeholder(SIDE * SIDE);
  const product = recording.matmul(recording.relu(place), recording.upload(noise(SIDE * SIDE, 6)), SIDE, SIDE, SIDE);
  const program = await recording.compile([recording.vecAdd(product, place)]);
  // A chain is compiled when it runs for the second time.
  for (let run = 0; run < 3; run++) {
    read.push((await program.read([noise(SIDE * SIDE, 7 + run)]))[0]);
  }
  return read;
}

async function tensors(device) {
  const x = device.tensor(noise(1000 * 512, 8), [1000, 512]);
  const w = device.tensor(noise(512 * 300, 9), [512, 300]);
  const y = x.matmul(w).relu();
  const results = [y, y.softmax(), y.sum(0), y.transpose().mul(2).add(1), x.exp().mean(1)];
  return Promise.all(results.map((tensor) => tensor.data()));
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

// The end of a worker ends the device: an error for what it was doing and for all later calls, until it is rebuilt.
export async function threadCrash(relampago) {
  await relampago.default();
  const codes = [];
  for (const place of [0, 1]) {
    const workers = watchWorkers();
    const device = await relampago.GpuDevice.create({ backend: 'simd', threads: 2 });
    const matrix = noise(SIDE * SIDE, 1);
    const product = (on) => codeOf(relampago, () => on.matmul(matrix, matrix, SIDE, SIDE, SIDE));
    const pending = product(device);
    workers[place].dispatchEvent(new ErrorEvent('error', { message: 'a failure' }));
    const renewed = await device.rebuild();
    codes.push(await pending, await product(device), await product(renewed), workers.map(({ ended }) => ended));
    renewed.dispose();
  }
  return codes;
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
