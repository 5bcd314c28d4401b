// What errors of operations say.
import init, { GpuDevice } from 'relampago';

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
const { input } = batch;

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
  () => program.runN([x], 2, [[0, 0, 0]]),
]) {
  try {
    await wrong();
    messages.push('no error');
  } catch (error) {
    messages.push(`${error.code}: ${error.message}`);
  }
}
console.log(JSON.stringify(messages));
