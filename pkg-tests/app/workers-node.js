import init, { GpuDevice } from 'relampago';

await init();
const results = [];
for (const options of [{ worker: true, threads: 1 }, { threads: 2 }, { threads: 1 }, { worker: false }]) {
  const { backend, info } = await GpuDevice.create(options);
  results.push(`${backend} ${info.threads}`);
}
console.log(JSON.stringify(results));
