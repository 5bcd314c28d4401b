// The application that every environment runs. It imports nothing, so that each
// environment can import the package in its own way, and returns plain data.

import { memory } from './memory.js';
import { long, ops } from './ops.js';

export async function run(relampago, backend, wasm) {
  const { default: init, GpuDevice } = relampago;
  await init(wasm);
  await init(); // a second call changes nothing
  const device = await GpuDevice.create({ backend });
  const results = {
    backend: device.backend,
    instructionSet: device.info.instructionSet,
    ops: await onDevice(device),
    batch: await inBatch(device),
    resident: await resident(device),
    program: await programs(device),
    changed: await changedAfterwards(device),
    cancelled: await cancelled(device),
    resizable: await onResizable(device),
    into: await intoArrays(device),
    memory: await memory(relampago, device),
    interop: await interop(device),
    disposable: typeof device[Symbol.dispose ?? 'dispose'], // WebKit lacks the symbol.
    errors: await errors(relampago, device),
  };
  device.dispose();
  results.errors.disposed = await codeOf(relampago, () => device.relu(new Float32Array(4)));
  return results;
}

async function onDevice(device) {
  const results = [];
  for (const [method, inputs, parameters] of ops) {
    results.push(plain(await device[method](...inputs, ...parameters)));
  }
  return results;
}

async function inBatch(device) {
  const batch = device.batch();
  const ids = ops.map(([method, inputs, parameters]) =>
    batch[method](...inputs.map((input) => batch.upload(input)), ...parameters));
  await batch.execute();
  const results = [];
  for (const id of ids) {
    results.push(plain(await batch.read(id)));
  }
  batch.dispose();
  return results;
}

// One uploaded buffer, used by two batches.
async function resident(device) {
  const weights = await device.upload(Float32Array.of(1, -2, 3, -4));
  const results = { length: weights.length, values: [] };
  for (const factor of [0.5, 2]) {
    const batch = device.batch();
    const id = batch.scale(batch.relu(batch.input(weights)), factor);
    await batch.execute();
    results.values.push(plain(await batch.read(id)));
    batch.dispose();
  }
  weights.dispose();
  return results;
}

// A batch that was compiled once, run in every way that there is.
async function programs(device) {
  const batch = device.batch();
  const x = batch.placeholder(4);
  const y = batch.vecAdd(batch.scale(batch.relu(x), 0.5), batch.upload(Float32Array.of(1, 1, 1, 1)));
  const kernels = (plan) => plan.kernels.map(({ operations, bytesMoved }) => [operations.join(), bytesMoved]);
  const results = { batch: kernels(await batch.explain()) };
  const program = await batch.compile([y]);
  batch.dispose(); // The program has what it needs.
  results.plan = kernels(await program.explain());
  results.backends = (await program.explain()).kernels.map(({ backend }) => backend === device.backend);
  results.time = await timed(program, Float32Array.of(2, -2, 4, -4));
  results.read = plain((await program.read([Float32Array.of(2, -2, 4, -4)]))[0]);
  const [first] = await program.run([Float32Array.of(2, -2, 4, -4)]);
  results.again = plain((await program.read([first]))[0]);
  const [last] = await program.runN([Float32Array.of(8, 8, 8, 8)], 3, [[0, 0]]);
  results.loop = plain(await last.read());
  results.stream = [];
  for await (const [values] of program.stream([[first], [last]])) {
    results.stream.push(plain(values));
  }
  [program, first, last].forEach((object) => object.dispose());
  return results;
}

// The times of a program's kernels, or the code where there is none, and that of a wrong argument.
async function timed(program, x) {
  const isTime = ({ milliseconds }) => milliseconds >= 0 && milliseconds < 1000;
  const code = (error) => error.code;
  return [
    await program.time([x]).then(({ kernels }) => kernels.map(isTime), code),
    await program.time([Float32Array.of(1)]).catch(code),
    await program.time([x], { signal: AbortSignal.abort() }).catch(code),
  ];
}

// Calls have read their arguments when they return.
async function changedAfterwards(device) {
  const batch = device.batch();
  const program = await batch.compile([batch.neg(batch.placeholder(3))]);
  batch.dispose();
  const x = Float32Array.of(1, -2, 3);
  const calls = [device.relu(x), program.read([x]), device.upload(x)];
  x.fill(9);
  const [values, [negated], buffer] = await Promise.all(calls);
  const results = [values, negated, await buffer.read()].map(plain);
  [program, buffer].forEach((object) => object.dispose());
  return results;
}

// Arrays whose buffers may still grow.
async function onResizable(device) {
  const x = new Float32Array(new ArrayBuffer(12, { maxByteLength: 64 }));
  x.set([1, -2, 3]);
  const batch = device.batch();
  const program = await batch.compile([batch.neg(batch.placeholder(3))]);
  batch.dispose();
  const buffer = await device.upload(x);
  const results = [await device.relu(x), (await program.read([x]))[0], await buffer.read()].map(plain);
  [program, buffer].forEach((object) => object.dispose());
  return results;
}

// What compilers of shaders might take for the first input.
async function cancelled(device) {
  const batch = device.batch();
  const [x, y] = [Float32Array.of(2, Infinity, 1, 3), Float32Array.of(NaN, Infinity, 1e10, 1)].map((values) => batch.upload(values));
  const difference = () => batch.sub(x, y);
  const ids = [batch.vecAdd(difference(), y), batch.maximum(y, difference()), batch.minimum(difference(), y)];
  await batch.execute();
  const results = [];
  for (const id of ids) {
    results.push(String(await batch.read(id)));
  }
  batch.dispose();
  return results;
}

// What went wrong with results in arrays of the caller's: apart from all that is read, beginning with
// the first input, which the result then overwrites, and one value after it.
async function intoArrays(device) {
  const wrong = [];
  for (const [method, [first, ...others], parameters] of [...ops, ...long]) {
    const right = await device[method](first, ...others, ...parameters);
    if (typeof right === 'number') {
      continue;
    }
    for (const start of [undefined, 0, 1]) {
      const memory = new Float32Array(1 + Math.max(first.length, right.length));
      const x = start === undefined ? first : memory.subarray(0, first.length);
      x.set(first);
      const same = start === 0 && first.length === right.length;
      const into = same ? x : memory.subarray(start, (start ?? 0) + right.length);
      const result = await device[method](x, ...others, ...parameters, { into });
      if (result !== into || right.some((value, i) => !Object.is(value, into[i]))) {
        wrong.push([method, start]);
      }
    }
  }
  const batch = device.batch();
  const x = batch.placeholder(3);
  const program = await batch.compile([batch.neg(x), batch.softmax(x)]);
  batch.dispose();
  const into = new Float32Array(3);
  const [negated, shares] = await program.read([Float32Array.of(1, 1, 1)], { into: [into] });
  if (negated !== into || into.some((value) => value !== -1) || shares.length !== 3) {
    wrong.push('program');
  }
  // Nothing is written where one of them is too short, or the other one.
  for (const [other, expected] of [[new Float32Array(2), 'LENGTH_MISMATCH'], [into, 'INVALID_ARGUMENT'], [new Float32Array(into.buffer), 'INVALID_ARGUMENT']]) {
    const refused = await program.read([into], { into: [into, other] }).catch(({ code }) => code);
    if (refused !== expected || into.some((value) => value !== -1)) {
      wrong.push(`program, ${expected}`);
    }
  }
  program.dispose();
  return [...wrong, ...await intoReads(device)];
}

// The same of buffers and of batches, whose values arrays of another length leave unread.
async function intoReads(device) {
  const wrong = [];
  const values = Float32Array.of(1, -2, 3);
  const buffer = await device.upload(values);
  const batch = device.batch();
  const id = batch.neg(batch.input(buffer));
  await batch.execute();
  const reads = [['buffer', (options) => buffer.read(options), 1], ['batch', (options) => batch.read(id, options), -1]];
  for (const [what, read, sign] of reads) {
    const memory = new Float32Array(5);
    const into = memory.subarray(1, 4);
    if ((await read({ into })) !== into || String(memory) !== String([0, ...values.map((value) => sign * value), 0])) {
      wrong.push(`${what}: ${memory}`);
    }
    for (const [other, expected] of [[new Float32Array(2), 'LENGTH_MISMATCH'], [new Float64Array(3), 'LENGTH_MISMATCH']]) {
      const refused = await read({ into: other }).catch(({ code }) => code);
      if (refused !== expected || other.some((value) => value !== 0)) {
        wrong.push(`${what}, ${other.constructor.name}(${other.length}): ${refused}`);
      }
    }
    const misspelt = await read({ onto: into }).catch(({ message }) => message);
    if (!/no option `onto`; did you mean `into`/.test(misspelt)) {
      wrong.push(`${what}, a misspelt option: ${misspelt}`);
    }
    const again = await read();
    if (again === into || String(again) !== String(into)) {
      wrong.push(`${what}, read again: ${again}`);
    }
  }
  batch.dispose();
  buffer.dispose();
  return wrong;
}

// Whether a page's own code can use the GPU's objects: a buffer keeps its values after it was disposed of.
async function interop(device) {
  const { gpuDevice } = device;
  if (globalThis.GPUDevice === undefined || !(gpuDevice instanceof globalThis.GPUDevice)) {
    return false;
  }
  const buffer = await device.upload(new Float32Array(4096).fill(7));
  const { gpuBuffer } = buffer;
  buffer.dispose();
  const next = await device.upload(new Float32Array(4096).fill(-1));
  const { MAP_READ, COPY_DST } = globalThis.GPUBufferUsage;
  const staging = gpuDevice.createBuffer({ size: 16, usage: MAP_READ | COPY_DST });
  const encoder = gpuDevice.createCommandEncoder();
  encoder.copyBufferToBuffer(gpuBuffer, 0, staging, 0, 16);
  gpuDevice.queue.submit([encoder.finish()]);
  await staging.mapAsync(globalThis.GPUMapMode.READ);
  const [value] = new Float32Array(staging.getMappedRange());
  [staging, gpuBuffer].forEach((one) => one.destroy());
  next.dispose();
  return value === 7;
}

async function errors(relampago, device) {
  const code = (action) => codeOf(relampago, action);
  const one = Float32Array.of(1);
  const two = Float32Array.of(1, 2);
  return {
    mismatch: await code(() => device.vecAdd(one, two)),
    shape: await code(() => device.matmul(two, two, 2, 2, 2)),
    empty: await code(() => device.max(new Float32Array(0))),
    clip: await code(() => device.clip(one, 1, -1)),
    record: await code(() => recordMismatch(device)),
    unbound: await code(() => executePlaceholder(device)),
    missing: await code(() => runWithoutArguments(device)),
    ...await wrongArguments(code, device),
    // A value's class is named.
    plain: await device.relu([1]).catch(({ message }) => message.match(/\(\w+\)/)?.[0]),
    intoShort: await code(() => device.relu(two, { into: one })),
    intoOther: await code(() => device.relu(one, { into: new Float64Array(1) })),
    intoScalar: await code(() => device.sum(one, { into: one })),
    falseSignal: await code(() => device.relu(one, { signal: false })),
    abortedBefore: await code(() => device.relu(one, { signal: AbortSignal.abort() })),
    abortedDuring: await code(() => abortLater((options) => device.softmax(new Float32Array(1000), options))),
    abortedCreation: await code(() => relampago.GpuDevice.create({ signal: AbortSignal.abort() })),
  };
}

// Mistakes that types find, and arrays that were given away.
async function wrongArguments(code, device) {
  const detached = Float32Array.of(1, 2);
  structuredClone(detached, { transfer: [detached.buffer] });
  const batch = device.batch();
  const x = batch.placeholder(2);
  const program = await batch.compile([batch.relu(x)]);
  const streamed = async (runs) => {
    for await (const _ of program.stream(runs)) {}
  };
  const codes = {
    detached: await code(() => device.relu(detached)),
    detachedUpload: await code(() => device.upload(detached)),
    detachedInBatch: await code(() => batch.upload(detached)),
    detachedArgument: await code(() => program.run([detached])),
    noArguments: await code(() => program.read(null)),
    noArgumentsToRun: await code(() => program.run(null)),
    noOutputs: await code(() => batch.compile(null)),
    noFeedback: await code(() => program.runN([Float32Array.of(1, 2)], 2, null)),
    noRuns: await code(() => streamed(5)),
    notArguments: await code(() => streamed([1])),
    notBuffer: await code(() => batch.input({ length: 2 })),
    fraction: await code(() => batch.relu(0.5)),
  };
  const executed = device.batch();
  const y = executed.relu(executed.upload(Float32Array.of(1)));
  const executing = executed.execute();
  codes.whileExecuting = await code(() => executed.relu(y));
  await executing;
  codes.afterwards = await code(() => executed.relu(y));
  [batch, program, executed].forEach((object) => object.dispose());
  return codes;
}

function recordMismatch(device) {
  const batch = device.batch();
  try {
    batch.vecAdd(batch.upload(Float32Array.of(1)), batch.upload(Float32Array.of(1, 2)));
  } finally {
    batch.dispose();
  }
}

async function executePlaceholder(device) {
  const batch = device.batch();
  batch.relu(batch.placeholder(1));
  await batch.execute().finally(() => batch.dispose());
}

async function runWithoutArguments(device) {
  const batch = device.batch();
  const program = await batch.compile([batch.relu(batch.placeholder(1))]);
  batch.dispose();
  await program.run([]).finally(() => program.dispose());
}

// What was started, and aborted at once.
export function abortLater(start) {
  const controller = new AbortController();
  const promise = start({ signal: controller.signal });
  controller.abort();
  return promise;
}

// The code of the RelampagoError that `action` fails with, or what happened instead.
export async function codeOf({ RelampagoError }, action) {
  try {
    await action();
    return 'no error';
  } catch (error) {
    return error instanceof RelampagoError && error instanceof Error ? error.code : String(error);
  }
}

const plain = (result) => (typeof result === 'number' ? result : Array.from(result));
