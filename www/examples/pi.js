import init, { GpuDevice } from 'relampago';

await init();
const device = await GpuDevice.create();

// The share of random points within a quarter of a circle is π / 4.
const points = device.random.uniform([2, 1_000_000], { seed: 7 });
const inside = points.square().sum(0).less(1).mean();

const began = performance.now();
console.log((4 * await inside.item()).toFixed(2)); // prints: 3.14
console.log(`a million points in ${(performance.now() - began).toFixed()} ms on ${device.backend}`);
