import { createWith } from './devices.js';

/** Bundlers look for this very expression. */
const spawn = () => new Worker(new URL('./relampago_worker.js', import.meta.url), { type: 'module' });

/** `GpuDevice.create` where workers are asked for; `createHere` is what it is elsewhere. */
export const create = (options, createHere) => createWith(createHere, spawn, options);
