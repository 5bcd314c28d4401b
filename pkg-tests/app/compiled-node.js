// How many modules a chain has made for itself after each of its runs, and whether they change what it gives.

import init, { GpuDevice } from 'relampago';

await init();
let made = 0;
WebAssembly.Module = new Proxy(WebAssembly.Module, {
  construct(Module, values) {
    made++;
    return new Module(...values);
  },
});
const device = await GpuDevice.create({ backend: 'simd' });
const batch = device.batch();
const x = batch.placeholder(100_001);
const program = await batch.compile([batch.vecAdd(batch.scale(batch.relu(x), 2), x)]);
const values = Float32Array.from({ length: 100_001 }, (_, i) => (i % 7 ? i - 50_000 : NaN));
const counts = [];
const results = [];
for (let run = 0; run < 3; run++) {
  results.push((await program.read([values]))[0]);
  counts.push(made);
}
const [first, ...others] = results;
const same = others.every((other) => other.every((value, i) => Object.is(value, first[i])));
console.log(JSON.stringify({ counts, same }));
