// Tensors in Node, on SIMD and one thread: `npm ci`, `cargo xtask package`, and then `node tensors.mjs [ROUNDS]`.

import { cpus } from 'node:os';
import init, { GpuDevice } from '../../target/npm/relampago/node.js';
import { openJax, table } from './tensors.js';

const rounds = Number(process.argv[2] ?? 40);

await init();
const device = await GpuDevice.create({ backend: 'simd' });
console.log(`${cpus()[0].model.trim()}, Node ${process.versions.node}, ${rounds} rounds in turns, ms\n`);
console.log(await table(device, await openJax('wasm'), rounds));
process.exit(0);
