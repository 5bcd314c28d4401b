import init, { CustomOp, GpuDevice } from 'relampago';

await init();
const device = await GpuDevice.create();

// An operation of your own has an expression in WGSL for GPUs and a function for SIMD.
const shrink = new CustomOp({
    name: 'shrink',
    inputs: ['x'],
    parameters: ['limit'],
    wgsl: 'sign(x) * max(abs(x) - limit, 0.0)',
    function: (x, limit) => Math.sign(x) * Math.max(Math.abs(x) - limit, 0),
});

const batch = device.batch();
const x = batch.upload(Float32Array.of(-3, 0.5, 2));
const y = batch.scale(batch.customElementwise(shrink, [x], [1]), 10);
await batch.execute();
console.log((await batch.read(y)).join(' ')); // prints: -20 0 10
export { batch };
