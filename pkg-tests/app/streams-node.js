import init, { GpuDevice } from 'relampago';
import { streams } from './streams.js';

await init();
console.log(JSON.stringify(await streams(await GpuDevice.create({ backend: 'simd' }))));
