// In a service worker, which refuses to import scripts later. The first line is the entry's.
import * as relampago from './relampago/index.js';
import { codeOf } from './app.js';
import { ops } from './ops.js';

self.onmessage = async ({ data: backend, ports: [port] }) => {
  try {
    port.postMessage(await run(backend));
  } catch (error) {
    port.postMessage({ failure: String(error.stack ?? error) });
  }
};

async function run(backend) {
  const { default: init, GpuDevice } = relampago;
  await init();
  const device = await GpuDevice.create({ backend, worker: false, threads: 1 });
  const results = [];
  for (const [method, inputs, parameters] of ops) {
    const result = await device[method](...inputs, ...parameters);
    results.push(typeof result === 'number' ? result : [...result]);
  }
  const refused = [];
  for (const options of [{ worker: true }, { threads: 2 }]) {
    refused.push(await codeOf(relampago, () => GpuDevice.create(options)));
  }
  const message = await GpuDevice.create({ worker: true }).catch((error) => error.message);
  return { backend: device.backend, info: device.info, ops: results, refused, message };
}
