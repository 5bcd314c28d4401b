import * as relampago from 'relampago';
import { memory, runTensors } from './tensors.js';

const count = Number(process.argv[2]);
const results = await runTensors(relampago, { backend: 'simd', count });
console.log(JSON.stringify({ ...results, memory: await memory(relampago, 10_000) }));
