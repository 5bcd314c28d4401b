// What devices in workers do, case by case; threads-cases.js has devices with threads, abort-cases.js
// aborted work. Imports nothing of the package, as app.js does not, and returns plain data.

import { run } from './app.js';
import { optionMistakes } from './option-mistakes.js';
import { streams } from './streams.js';
import { abortLater, codeOf, create, watchWorkers } from './workers-tools.js';

export * from './abort-cases.js';
export * from './threads-cases.js';

// The whole application on both kinds of device, and whether they agree bit by bit.
export async function same(relampago, backend) {
  const inWorker = await run(withOptions(relampago, { worker: true }), backend);
  const here = await run(relampago, backend);
  return { inWorker, agree: JSON.stringify(inWorker.ops) === JSON.stringify(here.ops) };
}

// Which back-end is chosen, why, and whether a GPU may be insisted on.
export async function choice(relampago) {
  await relampago.default();
  const adapter = await navigator.gpu?.requestAdapter();
  const { backend, reason } = (await relampago.GpuDevice.create()).info;
  const insisted = await codeOf(relampago, () => relampago.GpuDevice.create({ backend: 'gpu' }));
  const shares = typeof SharedArrayBuffer === 'function';
  return { hasAdapter: Boolean(adapter), shares, backend, reason, insisted };
}

export async function told(relampago, backend) {
  const { GpuDevice } = relampago;
  const [here, there] = await devices(relampago, { backend, policy: { matmul: Infinity } });
  const seen = (device) => ({ info: { ...device.info, worker: undefined, threads: undefined, threadsReason: undefined }, policy: device.policy, backend: device.backend });
  return {
    here: JSON.stringify(seen(here)),
    there: JSON.stringify(seen(there)),
    inWorker: [here.info.worker, there.info.worker],
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
    const local = await relampago.GpuDevice.create({ backend });
    results.push({
      calls: await calls(code, device),
      batches: await batches(code, device, other),
      programs: await programs(code, device, other, local),
      options: await optionMistakes(relampago, device),
      messages: await messages(relampago, device),
      streams: await streams(device),
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
    buffer: await code(async () => device.relu(await device.upload(one))),
    weights: await code(() => device.matmulCache().weights({ foo: 1 })),
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

/** What the methods of an object say that are called without it. */
function alone(message, object, names) {
  return Promise.all(names.map((name) => message(() => object[name].call(undefined))));
}

async function messages({ TensorView }, device) {
  const message = (call) => Promise.resolve().then(call).then(() => 'no error', (error) => error.message);
  const view = new TensorView([1, 1]);
  const [one, two] = [Float32Array.of(1), Float32Array.of(1, 2)];
  const [batch, buffer, cache] = [device.batch(), await device.upload(one), device.matmulCache()];
  const id = batch.upload(one);
  const program = await batch.compile([batch.relu(batch.placeholder(1))]);
  return [
    await message(() => device.upload([1])),
    await message(() => batch.upload([1])),
    await message(() => batch.vecAdd(id, 'id')),
    await message(() => batch.vecAdd(-1, 'id')),
    await message(() => batch.vecAdd(id, device.batch().upload(one))),
    await message(() => batch.matmul(id, 0.5, 1, 1, 1)),
    await message(() => batch.matmul(id, 0.5, 1, 1, -1)),
    await message(() => batch.compile(['id'])),
    await message(() => batch.output('id')),
    await message(() => program.run([[1]])),
    await message(() => program.read([two])),
    await message(() => program.run([buffer, buffer])),
    await message(() => program.runN([one], 2, [0])),
    ...await alone(message, device, ['upload', 'batch', 'matmulCache', 'matmulView', 'tiledReduce2d', 'tiledSum2d', 'tune', 'rebuild', 'relu', 'tensor', 'zeros']),
    ...await alone(message, batch, ['upload', 'input', 'placeholder', 'matmulCached', 'customElementwise', 'output', 'keep', 'explain', 'compile', 'execute', 'read', 'relu']),
    ...await alone(message, program, ['explain', 'run', 'runN', 'read', 'time']),
    ...await alone(message, cache, ['insert', 'insertBlocks', 'matmulCached', 'remove', 'weights']),
    ...await alone(message, buffer, ['read']),
    await message(() => device.matmulView(view, [1], view, Float32Array.of(1))),
    await message(() => device.matmulView(view, Float32Array.of(1), view, 1)),
    await message(() => device.rebuild({ sginal: 1 })),
    await message(() => device.tune([], { sginal: 1 })),
  ];
}

async function batches(code, device, other) {
  const batch = device.batch();
  const id = batch.upload(Float32Array.of(1, 2));
  const foreignBuffer = await other.upload(Float32Array.of(1));
  const foreignId = other.batch().upload(Float32Array.of(1));
  const results = {
    upload: await code(() => batch.upload([1, 2])),
    id: await code(() => batch.relu('id')),
    negativeId: await code(() => batch.relu(-1)),
    foreignId: await code(() => batch.relu(foreignId)),
    cache: await code(() => batch.matmulCached({}, 'w', id, 1)),
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

async function programs(code, device, other, local) {
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
    symbol: await code(() => program.runN([two, two], Symbol('2'), [])),
    symbolPlace: await code(() => program.runN([two, two], 2, [[0, Symbol('0')]])),
    triple: await code(() => program.runN([two, two], 2, [[0, 0, 0]])),
    feedback: await code(() => program.runN([two, two], 2, { 0: 0 })),
    otherKind: await code(async () => program.run([two, await (device.info.worker ? local : other).upload(two)])),
    extraInto: await code(() => program.read([two, two], { into: [new Float32Array(2), new Float32Array(2)] })),
    numberInto: await code(() => program.read([two, two], { into: [1] })),
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
  // Calls share the loss, and name themselves alone.
  const named = (call) => call.catch(({ message }) => message.match(/\b(relu|vecAdd)\b/g));
  results.named = [await named(device.relu(matrix)), await named(device.vecAdd(matrix, matrix))];
  const next = await device.rebuild();
  results.rebuilt = [...await next.relu(Float32Array.of(-1, 1))];
  return results;
}

// How many workers there are, a while after whatever may end some.
export async function end(relampago) {
  const workers = watchWorkers();
  const counts = [];
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const running = () => workers.filter(({ ended }) => !ended).length;
  // Workers that should end do so at once, and on a busy machine after some seconds.
  const count = async (expected) => {
    await sleep(300);
    for (let i = 0; i < 100 && running() !== expected; i++) {
      await sleep(100);
    }
    counts.push(running());
  };
  const device = await create(relampago, { backend: 'simd', threads: 3 });
  const each = device.info.threads;
  const buffer = await device.upload(Float32Array.of(1));
  const batch = device.batch();
  await count(each);
  const last = device.relu(Float32Array.of(1));
  device.dispose();
  buffer.dispose();
  await count(each);
  batch.dispose();
  await last;
  await count(0);
  const threaded = await relampago.GpuDevice.create({ backend: 'simd', threads: 3 });
  await count(each === 1 ? 0 : each);
  threaded[Symbol.dispose ?? 'dispose']();
  await count(0);
  await codeOf(relampago, () => create(relampago, { backend: 'cuda' }));
  await codeOf(relampago, () => abortLater((abort) => create(relampago, abort)));
  await count(0);
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
  for (const wrong of [{ threads: 0 }, { threads: 1.5 }, { threads: '2' }, { threads: 1000 }, { worker: 'yes' }, { worker: 0 }, { worker: null }]) {
    codes.push(await code(wrong));
  }
  codes.push(await code({ worker: true, backend: 'cuda' }));
  codes.push(await code({ worker: true, policy: { matmul: 'never' } }));
  codes.push(await code({ worker: true, signal: AbortSignal.abort() }));
  codes.push(await codeOf(relampago, () => abortLater((abort) => relampago.GpuDevice.create({ worker: true, ...abort }))));
  return codes;
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
