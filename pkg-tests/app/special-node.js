import { special } from './special.js';
import { cases } from './special-cases.js';

const { default: init, GpuDevice } = await import('relampago');
await init();
console.log(JSON.stringify(await special(await GpuDevice.create(), cases)));
