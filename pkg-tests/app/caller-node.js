// A call of the module during which the engine throws away the compiled code of its caller.
import init, { GpuDevice } from 'relampago';

class Counter {
  step() {
    return 'before';
  }
}

await init();
const device = await GpuDevice.create({ backend: 'simd' });
const buffer = await device.upload(new Float32Array([1, 2]));
const counter = new Counter();
const change = () => {
  Counter.prototype.step = () => 'after';
};
let onRead = () => undefined;
const options = {
  get signal() {
    onRead();
    return undefined;
  },
};
const call = () => ({ reading: buffer.read(options), step: counter.step() });

for (let i = 0; i < 30_000; i += 1) {
  await call().reading;
}
onRead = change;
const { reading, step } = call();
console.log(JSON.stringify({ values: [...(await reading)], step }));
