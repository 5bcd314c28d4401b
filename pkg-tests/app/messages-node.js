// What errors of operations say.
import init, { GpuDevice } from 'relampago';

await init();
const device = await GpuDevice.create({ backend: 'simd' });
const x = new Float32Array(4);
const image = (options) =>
  device.convolve2d(x, x, { inputRows: 2, inputCols: 2, kernelRows: 2, kernelCols: 2, ...options });

const messages = [];
for (const wrong of [
  () => image({ kernelRows: 3 }),
  () => image({ strideCols: 0 }),
  () => image({ kernelCols: -1 }),
  () => device.clip(x, 2, 1),
  () => device.vecAdd(x, new Float32Array(3)),
  () => device.max(new Float32Array(0)),
  () => device.relu([1]),
]) {
  try {
    await wrong();
    messages.push('no error');
  } catch (error) {
    messages.push(`${error.code}: ${error.message}`);
  }
}
console.log(JSON.stringify(messages));
