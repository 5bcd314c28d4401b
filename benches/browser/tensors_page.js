// Tensors on WebGPU or SIMD, run by the page itself: `?backend=simd&rounds=N&to=URL`.

import init, { GpuDevice } from 'relampago';
import { deliver } from './deliver.js';
import { openJax, table } from './tensors.js';

const { backend = 'gpu', rounds = '40' } = Object.fromEntries(new URLSearchParams(location.search));

globalThis.outcome = run().then(deliver, (error) => deliver({ failure: String(error.stack ?? error) }));

async function run() {
  await init(new URL('relampago/relampago_relaxed.wasm', location));
  const device = await GpuDevice.create({ backend });
  const jax = await openJax(backend === 'gpu' ? 'webgpu' : 'wasm');
  return { adapter: device.info.adapter, markdown: await table(device, jax, Number(rounds)) };
}
