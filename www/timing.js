// How long the same convolution takes in three ways.

import { convolve, deviceFor } from './engine.js';
import { convolvePlain } from './plain.js';

const WARM_UP = 2;
const RUNS = 9;
/** Slow machines make fewer runs, but never fewer than three. */
const ENOUGH_MS = 600;

/**
 * Yields one row a contender: `{ name, milliseconds, runs, info }`, or `{ name, error }` where it
 * cannot run. Stops between two runs when `signal` is aborted.
 */
export async function* measure(picture, filter, signal) {
  const [channel] = picture.channels;
  for (const [name, backend] of [['GPU', 'gpu'], ['SIMD', 'simd']]) {
    try {
      const device = await deviceFor(backend);
      const timing = await median(() => convolve(device, channel, picture, filter), signal);
      yield { name, info: device.info, ...timing };
    } catch (error) {
      signal.throwIfAborted();
      yield { name, error };
    }
  }
  yield { name: 'Plain JS', ...(await median(() => convolvePlain(channel, picture, filter), signal)) };
}

/** Returns the median duration of some runs of `work`, and their number. Stops between two runs when `signal` is aborted. */
export async function median(work, signal) {
  const times = [];
  let spent = 0;
  for (let run = -WARM_UP; run < RUNS && (times.length < 3 || spent < ENOUGH_MS); run++) {
    await pause();
    signal?.throwIfAborted();
    const began = performance.now();
    await work();
    const took = performance.now() - began;
    if (run >= 0) {
      times.push(took);
      spent += took;
    }
  }
  times.sort((a, b) => a - b);
  const middle = times.length >> 1;
  const milliseconds = times.length % 2 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
  return { milliseconds, runs: times.length };
}

/** Lets the browser paint and answer its visitor. */
export const pause = () => new Promise((resolve) => setTimeout(resolve));
