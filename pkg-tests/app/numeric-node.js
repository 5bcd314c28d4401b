import * as relampago from 'relampago';
import { readFileSync } from 'node:fs';
import { runNumeric } from './numeric.js';

// Before the entry is imported, and after this without a new device.
await relampago.default();
const device = await relampago.GpuDevice.create({ backend: 'simd' });
const messageOf = (call) => {
  try {
    return `nothing thrown, but ${call()}`;
  } catch ({ code, message }) {
    return `${code} ${message}`;
  }
};
const calls = [() => device.tensor([1]).cumsum(0), () => device.arange(3), () => relampago.Tensor.einsum('i', [])];
const early = calls.map(messageOf);
await import('relampago/numeric');
const late = calls.map(messageOf);
await import('relampago/train');
const results = await runNumeric(relampago, readFileSync('cases.txt', 'utf8'), JSON.parse(process.argv[2]));
console.log(JSON.stringify({ ...results, early, late }));
