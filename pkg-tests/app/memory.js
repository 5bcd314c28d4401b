// Arrays whose memory changes: lost, resized, grown, shared. Every call that takes an array is given each of
// them. Returns what went wrong, which is nothing.

import { codeOf } from './app.js';
import { long, ops } from './ops.js';

export async function memory(relampago, device) {
  return [...await lostArrays(relampago, device), ...await unusualArrays(device), ...await overlaps(device)];
}

function shrunk(Class, bytes, ...place) {
  const buffer = new ArrayBuffer(4096, { maxByteLength: 4096 });
  const array = new Class(buffer, ...place);
  buffer.resize(bytes);
  return array;
}

function detached(array) {
  structuredClone(array, { transfer: [array.buffer] });
  return array;
}

function grownMemory(Class) {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 2 });
  const array = new Class(memory.buffer, 0, 4);
  memory.grow(1);
  return array;
}

/** Arrays that are no longer within their buffers. */
const LOST = {
  'of a detached buffer': (Class) => detached(Class.of(1, 2)),
  'of no values, of a detached buffer': (Class) => detached(new Class(0)),
  'of memory that grew': grownMemory,
  'whose end was cut off': (Class) => shrunk(Class, 8, 0, 16),
  'whose beginning was cut off': (Class) => shrunk(Class, 8, 16, 4),
  'that tracks a length, and begins beyond the buffer': (Class) => shrunk(Class, 8, 16),
};

async function lostArrays(relampago, device) {
  const wrong = [];
  for (const [what, make] of Object.entries(LOST)) {
    for (const [name, call] of Object.entries(calls(relampago, device))) {
      const code = await codeOf(relampago, () => call(make(call.Class ?? Float32Array)));
      if (code !== 'INVALID_ARGUMENT') {
        wrong.push(`an array ${what}, ${name}: ${code}`);
      }
    }
  }
  return wrong;
}

/** Every call that takes an array. */
function calls({ TensorView }, device) {
  const all = {};
  for (const [method, inputs, parameters] of ops) {
    inputs.forEach((_, i) => {
      all[`input ${i} of ${method}`] = (array) => device[method](...inputs.with(i, array), ...parameters);
    });
  }
  const one = Float32Array.of(1, 2);
  Object.assign(all, {
    upload: (array) => device.upload(array),
    'upload of a batch': (array) => inBatch(device, (batch) => batch.upload(array)),
    'argument to run': (array) => withProgram(device, 2, (program) => program.run([array])),
    'argument to read': (array) => withProgram(device, 2, (program) => program.read([array])),
    'argument to runN': (array) => withProgram(device, 2, (program) => program.runN([array], 2, [])),
    'result of an operation': (into) => device.relu(one, { into }),
    'result of no values': (into) => device.relu(new Float32Array(0), { into }),
    'values of a buffer': (into) => withBuffer(device, one, (buffer) => buffer.read({ into })),
    'values of a batch': (into) => inBatch(device, async (batch) => {
      const id = batch.relu(batch.upload(one));
      await batch.execute();
      return batch.read(id, { into });
    }),
    'result of a program': (into) => withProgram(device, 2, (program) => program.read([one], { into: [into] })),
  });
  return TensorView ? Object.assign(all, ofTheFullEdition(TensorView, device)) : all;
}

function ofTheFullEdition(TensorView, device) {
  const view = new TensorView([1, 2]);
  const two = Float32Array.of(1, 2);
  const cached = (use) => {
    const cache = device.matmulCache();
    return Promise.resolve(use(cache)).finally(() => cache.dispose());
  };
  return {
    'cached weights': (array) => cached((cache) => cache.insert('w', array, { k: 1, n: 2 })),
    'input of a cached product': (array) => cached(async (cache) => {
      await cache.insert('w', two, { k: 1, n: 2 });
      return cache.matmulCached('w', array, 1);
    }),
    'cached blocks': ofBytes((bytes) => cached((cache) => cache.insertBlocks('w', bytes, { k: 32, n: 1, format: 'q8_0' }))),
    gather: (array) => view.gather(array),
    reduce: (array) => view.reduce('sum', array),
    reduceTiles: (array) => view.reduceTiles('sum', array, [1, 1]),
    'product of views': (array) => device.matmulView(view, array, view.transpose(0, 1), two),
    tiledSum2d: (array) => device.tiledSum2d(array, 1, 2),
    tiledReducePartial: (array) => device.tiledReducePartial('sum', array, 1, 2),
  };
}

const ofBytes = (call) => Object.assign(call, { Class: Uint8Array });

async function inBatch(device, use) {
  const batch = device.batch();
  try {
    return await use(batch);
  } finally {
    batch.dispose();
  }
}

async function withBuffer(device, values, use) {
  const buffer = await device.upload(values);
  try {
    return await use(buffer);
  } finally {
    buffer.dispose();
  }
}

async function withProgram(device, length, use) {
  const batch = device.batch();
  const program = await batch.compile([batch.relu(batch.placeholder(length))]);
  batch.dispose();
  try {
    return await use(program);
  } finally {
    program.dispose();
  }
}

/** A class whose constructor takes other arguments than its parent's. */
class Image extends Float32Array {
  constructor(rows, cols) {
    super(rows * cols);
  }
}

/** Arrays that have their values: a copy of these. */
const UNUSUAL = {
  'that tracks a length': (values) => filled(new Float32Array(resizable(values.length)), values),
  'within a buffer that may grow': (values) => filled(new Float32Array(resizable(values.length + 9), 8, values.length), values),
  'after its buffer has grown': grownAfter,
  'of a class of the caller': (values) => filled(new Image(1, values.length), values),
  ...(globalThis.SharedArrayBuffer && {
    'in shared memory': (values) => filled(new Float32Array(shared(values.length)), values),
    'in shared memory that has grown': sharedGrown,
    'that tracks shared memory': (values) => filled(new Float32Array(growing(values.length)), values),
  }),
};

const resizable = (length) => new ArrayBuffer(4 * length, { maxByteLength: 4 * length + 64 });
const shared = (length) => new SharedArrayBuffer(4 * length);
const growing = (length) => new SharedArrayBuffer(4 * length, { maxByteLength: 4 * length + 64 });

/** A shared memory of WebAssembly's, which may grow by a page. */
function sharedMemory(length) {
  const initial = Math.ceil((4 * length) / 65536);
  return new WebAssembly.Memory({ initial, maximum: initial + 1, shared: true });
}

function filled(array, values) {
  array.set(values);
  return array;
}

function grownAfter(values) {
  const buffer = resizable(values.length);
  const array = filled(new Float32Array(buffer, 0, values.length), values);
  buffer.resize(buffer.maxByteLength);
  return array;
}

function sharedGrown(values) {
  const memory = sharedMemory(values.length);
  const array = filled(new Float32Array(memory.buffer, 0, values.length), values);
  memory.grow(1);
  return array;
}

async function unusualArrays(device) {
  const wrong = [];
  for (const [method, inputs, parameters] of [...ops, ...long]) {
    const right = await device[method](...inputs, ...parameters);
    for (const [what, make] of Object.entries(UNUSUAL)) {
      const options = typeof right === 'number' ? {} : { into: make(new Float32Array(right.length)) };
      const result = await device[method](...inputs.map((input) => make(input)), ...parameters, options);
      if (!isSame(result, right) || (options.into && result !== options.into)) {
        wrong.push(`${method} of an array ${what}`);
      }
    }
  }
  return wrong;
}

const isSame = (a, b) => (typeof a === 'number' ? a === b : a.length === b.length && a.every((value, i) => value === b[i]));

/** Results on top of what is read: in one buffer, and in objects that stand for one block of shared memory. */
async function overlaps(device) {
  const wrong = [];
  const length = 100_000;
  const values = Float32Array.from({ length }, (_, i) => (i % 1000) - 500);
  const right = values.map((value) => Math.max(value, 0));
  for (const [what, memory] of Object.entries(BLOCKS)) {
    for (const distance of [-64, -1, 0, 1, 3, 64]) {
      const [mine, theirs] = memory(length);
      const x = filled(new Float32Array(mine, 256, length), values);
      const into = new Float32Array(theirs, 256 + 4 * distance, length);
      const result = await device.relu(x, { into });
      x.set(values);
      const [read] = await withProgram(device, length, (program) => program.read([x], { into: [into] }));
      if (![result, read].every((array) => array === into) || !isSame(into, right)) {
        wrong.push(`a result ${distance} values after its input, in ${what}`);
      }
    }
  }
  return wrong;
}

/** Two buffers of one block of memory. */
const BLOCKS = {
  'one buffer': oneBuffer,
  ...(globalThis.SharedArrayBuffer && { 'grown memory': grownShared, 'a clone': clonedShared }),
};

function oneBuffer(length) {
  const buffer = new ArrayBuffer(4 * length + 512);
  return [buffer, buffer];
}

function grownShared(length) {
  const memory = sharedMemory(length + 128);
  const before = memory.buffer;
  memory.grow(1);
  return [before, memory.buffer];
}

function clonedShared(length) {
  const buffer = shared(length + 128);
  return [buffer, structuredClone(buffer)];
}
