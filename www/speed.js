// A short benchmark of a device.

import { median } from './timing.js';

const SIDE = 1024;
const MILLION = 1 << 20;

const random = (length) => Float32Array.from({ length }, () => Math.random() - 0.5);

/** What is timed, from arrays to arrays. */
const ROWS = [
  {
    name: `matmul of ${SIDE} × ${SIDE}`,
    prepare: () => [random(SIDE * SIDE), random(SIDE * SIDE)],
    run: (device, [a, b]) => device.matmul(a, b, SIDE, SIDE, SIDE),
  },
  { name: 'GELU of a million', prepare: () => [random(MILLION)], run: (device, [x]) => device.gelu(x) },
  { name: 'softmax of a million', prepare: () => [random(MILLION)], run: (device, [x]) => device.softmax(x) },
];

/** Yields the median time of each row: `{ name, milliseconds, runs }`. */
export async function* speeds(device) {
  for (const { name, prepare, run } of ROWS) {
    const inputs = prepare();
    yield { name, ...(await median(() => run(device, inputs))) };
  }
}
