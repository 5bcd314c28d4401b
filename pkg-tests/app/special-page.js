// The query has the device's options.
import { special } from './special.js';
import { cases } from './special-cases.js';

const { options } = Object.fromEntries(new URLSearchParams(location.search));

async function run() {
  const { default: init, GpuDevice } = await import('./relampago/index.js');
  await init();
  return special(await GpuDevice.create(JSON.parse(options)), cases);
}

globalThis.outcome = run();
