import * as relampago from 'relampago';
import { runGradients } from './gradients.js';

// Before the entry is imported.
await relampago.default();
const x = (await relampago.GpuDevice.create({ backend: 'simd' })).tensor([1]);
const early = [() => x.sum().gradients(x)].map((call) => {
  try {
    return `nothing thrown, but ${call()}`;
  } catch ({ code, message }) {
    return `${code} ${message}`;
  }
});
const train = await import('relampago/train');
const results = await runGradients({ ...relampago, ...train, default: relampago.default }, { backend: 'simd' });
console.log(JSON.stringify({ ...results, early }));
