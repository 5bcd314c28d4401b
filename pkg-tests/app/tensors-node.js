import * as relampago from 'relampago';
import { inspect } from 'node:util';
import { memory, runTensors } from './tensors.js';

/** What the console prints of tensors. */
async function printed() {
  const device = await relampago.GpuDevice.create({ backend: 'simd' });
  const x = device.tensor([[1, 2]]);
  const texts = [x, x.greater(1), x.sum(), await x.argmax().run()].map((tensor) => inspect(tensor));
  device.jit((argument) => texts.push(inspect(argument)) && argument)(x);
  x.dispose();
  return [...texts, inspect(x)];
}

const count = Number(process.argv[2]);
const results = await runTensors(relampago, { backend: 'simd', count });
console.log(JSON.stringify({ ...results, printed: await printed(), memory: await memory(relampago, 10_000) }));
