import init, { GpuDevice, RelampagoError } from 'relampago';

await init();
const results = [];
for (const options of [{ worker: true }, { threads: 2 }, { threads: 1 }, { worker: false }]) {
  try {
    const device = await GpuDevice.create(options);
    results.push(device.backend);
  } catch (error) {
    results.push(error instanceof RelampagoError ? `${error.code}: ${error.message}` : String(error));
  }
}
console.log(JSON.stringify(results));
