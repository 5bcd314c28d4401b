// What errors of operations say.
import init, { GpuDevice, TensorView } from 'relampago';

await init();
const device = await GpuDevice.create({ backend: 'simd' });
const x = new Float32Array(4);
const image = (options) =>
  device.convolve2d(x, x, { inputRows: 2, inputCols: 2, kernelRows: 2, kernelCols: 2, ...options });

const buffer = await device.upload(x);
const tensor = device.tensor(x);
const batch = device.batch();
const { relu, upload, batch: newBatch, tiledSum2d, tune, rebuild } = device;
const { uniform } = device.random;
const { read: readBuffer } = buffer;
const program = await batch.compile([batch.relu(batch.placeholder(4))]);
const { run, read, runN, time, stream } = program;
const two = await batch.compile([batch.vecAdd(batch.placeholder(4), batch.placeholder(4))]);
const { input } = batch;

const other = await GpuDevice.create({ backend: 'simd' });
const foreign = await other.upload(x);

const messages = [];
for (const wrong of [
  () => image({ kernelRows: 3 }),
  () => image({ strideCols: 0 }),
  () => image({ kernelCols: -1 }),
  () => device.clip(x, 2, 1),
  () => device.vecAdd(x, new Float32Array(3)),
  () => device.max(new Float32Array(0)),
  () => device.relu([1]),
  () => device.relu(Promise.resolve(x)),
  () => device.vecAdd(x, buffer),
  () => device.relu(tensor),
  () => relu(x),
  () => device.relu(x, { itno: x }),
  () => batch.relu(x),
  () => batch.relu(buffer),
  () => batch.relu(tensor),
  () => GpuDevice.create({ backed: 'simd' }),
  () => upload(x),
  () => newBatch(),
  () => tiledSum2d(x, 2, 2),
  () => tune([]),
  () => rebuild(),
  () => readBuffer(),
  () => run([x]),
  () => read([x]),
  () => runN([x], 1, []),
  () => time([x]),
  () => stream([[x]]).next(),
  () => input(buffer),
  () => uniform([2], { seed: 1 }),
  () => program.read([x], { into: [1] }),
  () => program.read([x], { into: [new Float32Array(4), new Float32Array(4)] }),
  () => device.sum(x, { into: x }),
  () => tensor.clip(),
  () => tensor.scale('2'),
  () => program.runN([x], 2, [[0, 0, 0]]),
  () => GpuDevice.create({ backend: 'cuda' }),
  () => GpuDevice.create({ backend: 'gpu', policy: 5 }),
  () => GpuDevice.create({ threads: 0 }),
  () => device.upload([1]),
  () => device.upload(Promise.resolve(x)),
  () => batch.upload([1]),
  () => batch.placeholder(-1),
  () => batch.compile(['id']),
  () => batch.compile(5),
  () => batch.read(0.5),
  () => batch.input(foreign),
  () => device.tensor(foreign),
  () => program.run([foreign]),
  () => program.run([[1]]),
  () => two.run([buffer, [1]]),
  () => two.run([x, tensor]),
  () => program.run([new Float32Array(3)]),
  () => program.run([x, x]),
  () => program.read([Promise.resolve(x)]),
  () => program.stream(5).next(),
  () => device.tiledSum2d([1], 1, 1),
  () => device.matmulCache().insert('w', [1], { k: 1, n: 1 }),
  () => new TensorView([2, 2]).transpose('0', 1),
  () => new TensorView([2, 2]).gather([1]),
]) {
  try {
    await wrong();
    messages.push('no error');
  } catch (error) {
    messages.push(`${error.code}: ${error.message}`);
  }
}

/** For methods whether the first line of an error's stack is the caller's. */
const callers = {
  create: async function calledHere() {
    await GpuDevice.create({ backend: 'cuda' });
  },
  webgpu: async function calledHere() {
    await GpuDevice.create({ backend: 'webgpu' });
  },
  upload: async function calledHere() {
    await device.upload([1]);
  },
  operation: function calledHere() {
    return device.vecAdd(x, new Float32Array(3));
  },
  mixUp: async function calledHere() {
    await device.vecAdd(x, buffer);
  },
  record: function calledHere() {
    return batch.relu(-1);
  },
  recordUpload: function calledHere() {
    return batch.upload([1]);
  },
  compile: async function calledHere() {
    await batch.compile(['id']);
  },
  run: async function calledHere() {
    await program.run([[1]]);
  },
  read: async function calledHere() {
    await program.read([new Float32Array(3)]);
  },
  buffer: async function calledHere() {
    await buffer.read({ into: 5 });
  },
  sum: async function calledHere() {
    await device.tiledSum2d([1], 1, 1);
  },
  tensor: function calledHere() {
    return device.tensor(foreign);
  },
};
const stacks = {};
for (const [name, call] of Object.entries(callers)) {
  try {
    await call();
  } catch (error) {
    const [, line] = error.stack.split('\n');
    stacks[name] = / calledHere /.test(line) || error.stack;
  }
}
const chosen = await GpuDevice.create({ backend: device.backend }).then(({ backend }) => backend);
const insisted = await GpuDevice.create({ backend: 'webgpu' }).catch(({ code, message }) => `${code}: ${message}`);
console.log(JSON.stringify({ messages, stacks, chosen, insisted }));
