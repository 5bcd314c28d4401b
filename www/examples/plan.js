import init, { GpuDevice } from 'relampago';

await init();
const device = await GpuDevice.create();

// Four recorded operations become one kernel: the plan beside the result shows it.
const batch = device.batch();
const x = batch.placeholder(4);
const weights = batch.upload(Float32Array.of(2, 0.5, 1, 3));
const bias = batch.upload(Float32Array.of(1, 1, 1, 1));
export const program = await batch.compile([batch.scale(batch.relu(batch.vecAdd(batch.mul(x, weights), bias)), 2)]);

export const [y] = await program.read([Float32Array.of(1, -2, 3, -4)]);
console.log(y.join(' ')); // prints: 6 0 8 0
