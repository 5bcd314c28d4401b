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
const { relu } = device;

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
]) {
  try {
    await wrong();
    messages.push('no error');
  } catch (error) {
    messages.push(`${error.code}: ${error.message}`);
  }
}
console.log(JSON.stringify(messages));
