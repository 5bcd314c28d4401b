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
