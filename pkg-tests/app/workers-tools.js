// What the cases of devices in workers and of devices with threads need.

export { abortLater, codeOf } from './app.js';

export async function create(relampago, options) {
  await relampago.default();
  return relampago.GpuDevice.create({ worker: true, ...options });
}

// The workers to come, with whether they were ended and how often they were given an operation.
export function watchWorkers() {
  const workers = [];
  const Original = globalThis.Worker;
  globalThis.Worker = class extends Original {
    ended = false;
    runs = 0;

    constructor(...values) {
      super(...values);
      workers.push(this);
    }

    postMessage(message, ...rest) {
      this.runs += ['matmul', 'convolve2d'].includes(message?.[3]) ? 1 : 0;
      super.postMessage(message, ...rest);
    }

    terminate() {
      this.ended = true;
      super.terminate();
    }
  };
  return workers;
}

// A function that returns the next of a reproducible sequence of whole numbers below its argument;
// mulberry32 (Tommy Ettinger, 2017).
export function randomNumbers(seed) {
  return (limit) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let z = Math.imul(seed ^ (seed >>> 15), seed | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) % limit;
  };
}
