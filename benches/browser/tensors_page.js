// Tensors on WebGPU, run by the page itself: `?rounds=N&to=URL`.

import * as jax from '@jax-js/jax';
import init, { GpuDevice } from 'relampago';
import { deliver } from './deliver.js';
import { table } from './tensors.js';

const { rounds = '40' } = Object.fromEntries(new URLSearchParams(location.search));

globalThis.outcome = run().then(deliver, (error) => deliver({ failure: String(error.stack ?? error) }));

async function run() {
  await init(new URL('relampago/relampago_relaxed.wasm', location));
  const device = await GpuDevice.create({ backend: 'gpu' });
  if (!(await jax.init('webgpu')).includes('webgpu')) {
    throw new Error('jax-js has no WebGPU here');
  }
  jax.defaultDevice('webgpu');
  return { adapter: device.info.adapter, markdown: await table(device, jax, Number(rounds)) };
}
