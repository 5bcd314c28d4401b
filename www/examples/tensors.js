import init, { GpuDevice } from 'relampago';

await init();
const device = await GpuDevice.create();

// The nearest of two centres for each of four points. Change a number and run it again.
const points = device.tensor([[0, 0], [0, 1], [9, 8], [8, 9]]);
const centres = device.tensor([[1, 1], [7, 7]]);
const halfNorms = centres.square().sum(1).mul(0.5);
export const nearest = points.matmul(centres.transpose()).sub(halfNorms).argmax(1);

console.log(device.backend, device.info.reason);
console.log(String(await nearest.data())); // prints: 0,0,1,1
