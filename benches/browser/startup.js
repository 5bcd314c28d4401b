// Milliseconds from asking for the library to holding a first product.

import { inputsOf, rows } from './rows.js';

globalThis.outcome = firstProduct(Object.fromEntries(new URLSearchParams(location.search)));

async function firstProduct({ module, build, backend, threads }) {
  const row = rows.find(({ name }) => name === 'matmul 256');
  const inputs = inputsOf(row);
  const start = performance.now();
  const { open } = await import(`./contestants/${module}.js`);
  const { endToEnd } = await open({ build, backend, threads: Number(threads) });
  const { run } = await endToEnd(row, inputs);
  await run();
  return performance.now() - start;
}
