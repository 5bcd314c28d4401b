// What devices in workers and devices with threads do, case by case. Imports nothing of the
// package, as app.js does not, and returns plain data.

import { run } from './app.js';

// The whole application on both kinds of device, and whether they agree bit by bit.
export async function same(relampago, backend) {
  const inWorker = await run(withOptions(relampago, { worker: true }), backend);
  const here = await run(relampago, backend);
  return { inWorker, agree: JSON.stringify(inWorker.ops) === JSON.stringify(here.ops) };
}

export async function told(relampago, backend) {
  const { GpuDevice } = relampago;
  const [here, there] = await devices(relampago, { backend, policy: { matmul: Infinity } });
  const seen = (device) => ({ info: device.info, policy: device.policy, backend: device.backend });
  return {
    here: JSON.stringify(seen(here)),
    there: JSON.stringify(seen(there)),
    isDevice: there instanceof GpuDevice,
    gpuDevice: String(there.gpuDevice),
  };
}

export async function buffers(relampago, backend) {
  const device = await create(relampago, { backend });
  const weights = await device.upload(Float32Array.of(1, -2, 3, -4));
  const first = device.batch();
  const id = first.relu(first.input(weights));
  weights.dispose(); // The batch still needs it.
  await first.execute();
  const kept = first.keep(id);
  first.dispose();
  device.dispose(); // Buffers and batches outlive their device.
  const results = { length: kept.length, gpuBuffer: String(kept.gpuBuffer), values: [...await kept.read()] };
  kept.dispose();
  kept.dispose();
  return results;
}

export async function mistakes(relampago, backend) {
  await relampago.default();
  const code = (action) => codeOf(relampago, action);
  const results = [];
  for (const device of await devices(relampago, { backend })) {
    const other = await create(relampago, { backend });
    results.push({
      calls: await calls(code, device),
      batches: await batches(code, device, other),
      programs: await programs(code, device, other),
      disposed: await afterDispose(code, device),
    });
  }
  return results;
}

async function calls(code, device) {
  const [one, two] = [Float32Array.of(1), Float32Array.of(1, 2)];
  const options = { inputRows: 1, inputCols: 1, kernelRows: 1, kernelCols: 1 };
  return {
    mismatch: await code(() => device.vecAdd(one, two)),
    array: await code(() => device.relu([1, 2])),
    nothing: await code(() => device.vecAdd(one)),
    text: await code(() => device.scale(one, '2')),
    symbol: await code(() => device.scale(one, Symbol('2'))),
    shape: await code(() => device.matmul(two, two, 2, 2, 2)),
    fraction: await code(() => device.matmul(two, two, 1.5, 2, 2)),
    empty: await code(() => device.max(new Float32Array(0))),
    options: await code(() => device.convolve2d(one, one, null)),
    padding: await code(() => device.convolve2d(one, one, { ...options, padding: 'all' })),
    inherited: await code(() => device.convolve2d(one, one, Object.create({ ...options, padding: {} }))),
    upload: await code(() => device.upload('values')),
    signal: await code(() => device.relu(one, { signal: 'now' })),
    aborted: await code(() => device.relu(one, { signal: AbortSignal.abort() })),
    abortedUpload: await code(() => abortLater((options) => device.upload(one, options))),
  };
}

async function batches(code, device, other) {
  const batch = device.batch();
  const id = batch.upload(Float32Array.of(1, 2));
  const foreignBuffer = await other.upload(Float32Array.of(1));
  const foreignId = other.batch().upload(Float32Array.of(1));
  const results = {
    upload: await code(() => batch.upload([1, 2])),
    id: await code(() => batch.relu('id')),
    foreignId: await code(() => batch.relu(foreignId)),
    foreignBuffer: await code(() => batch.input(foreignBuffer)),
    early: await code(() => batch.read(id)),
    earlyKeep: await code(() => batch.keep(id)),
    aborted: await code(() => batch.execute({ signal: AbortSignal.abort() })),
  };
  const executing = batch.execute();
  const meanwhile = [code(() => batch.execute()), code(() => batch.read(id))];
  results.meanwhile = await Promise.all(meanwhile);
  await executing;
  results.late = await code(() => batch.relu(id));
  results.again = await code(() => batch.execute());
  results.foreignRead = await code(() => batch.read(foreignId));
  results.abortedRead = await code(() => abortLater((options) => batch.read(id, options)));
  results.values = String(await batch.read(id));
  batch.dispose();
  results.disposed = await code(() => batch.read(id));
  return results;
}

async function programs(code, device, other) {
  const batch = device.batch();
  const [x, y] = [batch.placeholder(2), batch.placeholder(2)];
  const sum = batch.vecAdd(x, y);
  const program = await batch.compile([sum]);
  const two = Float32Array.of(1, 2);
  const foreign = await other.upload(two);
  const gone = await device.upload(two);
  gone.dispose();
  const results = {
    length: await code(() => batch.placeholder(1.5)),
    nothing: await code(() => batch.compile([])),
    id: await code(() => batch.compile(['id'])),
    foreignId: await code(() => batch.compile([other.batch().placeholder(1)])),
    missing: await code(() => program.run([two])),
    none: await code(() => program.read()),
    number: await code(() => program.read([two, 2])),
    short: await code(() => program.read([two, Float32Array.of(1)])),
    foreign: await code(() => program.run([two, foreign])),
    gone: await code(() => program.run([two, gone])),
    times: await code(() => program.runN([two, two], 0, [[0, 0]])),
    pair: await code(() => program.runN([two, two], 2, [[0]])),
    place: await code(() => program.runN([two, two], 2, [[0, 2]])),
    aborted: await code(() => program.run([two, two], { signal: AbortSignal.abort() })),
    abortedRun: await code(() => abortLater((options) => program.run([two, two], options))),
    plan: (await program.explain()).kernels.map(({ operations }) => operations.join()),
    values: String(await program.read([two, two])),
  };
  batch.dispose();
  program.dispose();
  results.disposed = [
    await code(() => program.run([two, two])),
    await code(() => program.explain()),
    await code(() => batch.explain()),
    await code(() => batch.compile([sum])),
  ];
  return results;
}

async function afterDispose(code, device) {
  const buffer = await device.upload(Float32Array.of(1));
  buffer.dispose();
  device.dispose();
  device.dispose();
  return {
    op: await code(() => device.relu(Float32Array.of(1))),
    batch: await code(() => device.batch()),
    upload: await code(() => device.upload(Float32Array.of(1))),
    info: await code(() => device.info),
    rebuild: await code(() => device.rebuild()),
    buffer: await code(() => buffer.read()),
    length: await code(() => buffer.length),
  };
}

// Options are what they were when the operation was recorded.
export async function recorded(relampago, backend) {
  const device = await create(relampago, { backend });
  const batch = device.batch();
  const values = Float32Array.of(1, 2, 3, 4);
  const options = { inputRows: 2, inputCols: 2, kernelRows: 1, kernelCols: 1 };
  const id = batch.convolve2d(batch.upload(values), batch.upload(Float32Array.of(2)), options);
  values.fill(0);
  options.inputRows = 1;
  await batch.execute();
  return [...await batch.read(id)];
}

// Calls at once and in turn, by which the worker's buffers go back and forth; what is wrong among
// their results, and whether the caller's arrays are as they were.
export async function reused(relampago, backend) {
  const device = await create(relampago, { backend });
  const calls = Array.from({ length: 24 }, (_, i) => new Float32Array([700, 900, 700, 1100][i % 4]).fill(i - 12));
  const wrong = [];
  for (let round = 0; round < 4; round++) {
    const results = await Promise.all(calls.map((values) => device.scale(values, round)));
    results.forEach((result, i) => {
      const right = result.length === calls[i].length && result.every((value) => value === (i - 12) * round);
      right || wrong.push([round, i]);
    });
    const last = await device.relu(calls[round]);
    last.every((value) => value === 0) || wrong.push([round, 'relu']);
  }
  return { wrong, kept: calls.every((values, i) => values.every((value) => value === i - 12)) };
}

// What the module and the GPU have allocated after some runs of a program, and after many.
export async function steady(relampago, backend) {
  const allocated = watchAllocations();
  await relampago.default();
  const device = await relampago.GpuDevice.create({ backend });
  const batch = device.batch();
  const x = batch.placeholder(4096);
  const program = await batch.compile([batch.softmax(batch.scale(x, 2))]);
  const values = new Float32Array(4096);
  const run = async () => {
    const [resident] = await program.run([values]);
    const [buffer] = await program.run([resident]);
    resident.dispose();
    buffer.dispose();
  };
  for (let i = 0; i < 100; i++) {
    await run();
    await program.read([values]);
  }
  const first = allocated();
  for (let i = 0; i < 5000; i++) {
    await run();
  }
  return { first, last: allocated() };
}

// The memory of the module that is about to be loaded, and how many buffers the GPU has made.
function watchAllocations() {
  let memory;
  let gpuBuffers = 0;
  for (const name of ['instantiate', 'instantiateStreaming']) {
    const original = WebAssembly[name];
    WebAssembly[name] = async (...values) => {
      const result = await original.apply(WebAssembly, values);
      memory = (result.instance ?? result).exports.memory;
      return result;
    };
  }
  if (globalThis.GPUDevice) {
    const original = GPUDevice.prototype.createBuffer;
    GPUDevice.prototype.createBuffer = function (descriptor) {
      gpuBuffers++;
      return original.call(this, descriptor);
    };
  }
  return () => ({ moduleBytes: memory.buffer.byteLength, gpuBuffers });
}

// Ticks of the page's own timer while a product is computed.
export async function responsive(relampago) {
  const device = await create(relampago, { backend: 'simd' });
  const side = 1024;
  const matrix = new Float32Array(side * side).fill(1);
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  const product = await device.matmul(matrix, matrix, side, side, side);
  clearInterval(timer);
  return { ticks, value: product[side], length: matrix.length };
}

// A message that is none of the package's makes the worker fail, long before the product is
// computed.
export async function crash(relampago) {
  const workers = watchWorkers();
  const device = await create(relampago, { backend: 'simd' });
  const code = (action) => codeOf(relampago, action);
  const buffer = await device.upload(Float32Array.of(1));
  const matrix = new Float32Array(1024 * 1024);
  const batch = device.batch();
  batch.relu(batch.upload(matrix));
  const results = { before: await code(() => buffer.read()) };
  workers[0].postMessage([0, undefined, -1, 'method', [], []]);
  const product = code(() => device.matmul(matrix, matrix, 1024, 1024, 1024));
  results.during = await product;
  results.after = [
    await code(() => device.relu(matrix)),
    await code(() => device.upload(matrix)),
    await code(() => buffer.read()),
    await code(() => batch.execute()),
  ];
  const next = await device.rebuild();
  results.rebuilt = [...await next.relu(Float32Array.of(-1, 1))];
  return results;
}

// How many workers there are, a while after whatever may end some.
export async function end(relampago) {
  const workers = watchWorkers();
  const counts = [];
  const count = async () => {
    await new Promise((resolve) => setTimeout(resolve, 300));
    counts.push(workers.filter(({ ended }) => !ended).length);
  };
  const device = await create(relampago, { backend: 'simd', threads: 3 });
  const buffer = await device.upload(Float32Array.of(1));
  const batch = device.batch();
  await count();
  const running = device.relu(Float32Array.of(1));
  device.dispose();
  buffer.dispose();
  await count();
  batch.dispose();
  await running;
  await count();
  const threaded = await relampago.GpuDevice.create({ backend: 'simd', threads: 3 });
  await count();
  threaded[Symbol.dispose]();
  await count();
  await codeOf(relampago, () => create(relampago, { backend: 'cuda' }));
  await codeOf(relampago, () => abortLater((abort) => create(relampago, abort)));
  await count();
  return counts;
}

export async function none(relampago) {
  await relampago.default();
  return (await relampago.GpuDevice.create({ worker: false })).backend;
}

// What comes of a policy or a server that does not let the worker start.
export async function refused(relampago) {
  const code = (action) => codeOf(relampago, action);
  await relampago.default();
  return {
    worker: await code(() => relampago.GpuDevice.create({ worker: true })),
    threads: await code(() => relampago.GpuDevice.create({ threads: 2, backend: 'simd' })),
    plain: await code(() => relampago.GpuDevice.create()),
  };
}

export async function options(relampago) {
  await relampago.default();
  const code = (options) => codeOf(relampago, () => relampago.GpuDevice.create(options));
  const codes = [];
  for (const wrong of [{ threads: 0 }, { threads: 1.5 }, { threads: '2' }, { threads: 1000 }, { worker: 'yes' }]) {
    codes.push(await code(wrong));
  }
  codes.push(await code({ worker: true, backend: 'cuda' }));
  codes.push(await code({ worker: true, policy: { matmul: 'never' } }));
  codes.push(await code({ worker: true, signal: AbortSignal.abort() }));
  codes.push(await codeOf(relampago, () => abortLater((abort) => relampago.GpuDevice.create({ worker: true, ...abort }))));
  return codes;
}

// Large enough to be divided, but for the last two convolutions: of one, the parts would be hardly
// larger than its kernel; of the other, each would need padding of its own.
const PRODUCTS = [
  [1024, 1024, 256], [257, 1024, 1025], [300, 3500, 256], [512, 1025, 513], [256, 4200, 256], [700, 256, 2050],
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
    outcomes.push({ options, different: differences(results, expected), given });
    device.dispose();
  }
  return { isolated: crossOriginIsolated, outcomes };
}

async function large(device, workers = []) {
  const calls = [
    ...PRODUCTS.map(([m, k, n]) => () => device.matmul(noise(m * k, 1), noise(k * n, 2), m, k, n)),
    ...CONVOLUTIONS.map((options) => () => {
      const input = noise(options.inputRows * options.inputCols, 3);
      return device.convolve2d(input, noise(options.kernelRows * options.kernelCols, 4), options);
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

async function create(relampago, options) {
  await relampago.default();
  return relampago.GpuDevice.create({ worker: true, ...options });
}

async function devices(relampago, options) {
  await relampago.default();
  return [await relampago.GpuDevice.create(options), await create(relampago, options)];
}

// The package, with options that every device is created with.
function withOptions(relampago, options) {
  const create = (own) => relampago.GpuDevice.create({ ...own, ...options });
  return { ...relampago, GpuDevice: { create } };
}

function abortLater(start) {
  const controller = new AbortController();
  const promise = start({ signal: controller.signal });
  controller.abort();
  return promise;
}

// The workers to come, with whether they were ended and how often they were given an operation.
function watchWorkers() {
  const workers = [];
  const Original = globalThis.Worker;
  globalThis.Worker = class extends Original {
    ended = false;
    runs = 0;

    constructor(...values) {
      super(...values);
      workers.push(this);
    }

    postMessage(message, ...rest) {
      this.runs += ['matmul', 'convolve2d'].includes(message?.[3]) ? 1 : 0;
      super.postMessage(message, ...rest);
    }

    terminate() {
      this.ended = true;
      super.terminate();
    }
  };
  return workers;
}

async function codeOf({ RelampagoError }, action) {
  try {
    await action();
    return 'no error';
  } catch (error) {
    return error instanceof RelampagoError ? error.code : String(error.stack);
  }
}

// Values without a pattern, the same every time.
function noise(length, seed) {
  let state = seed;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return state / 2 ** 31;
  });
}
