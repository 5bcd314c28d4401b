import { invalid } from '../core.js';
import { copied } from './arguments.js';
import { RemoteDevice } from './device.js';
import { helped } from './threads.js';

const MOST_THREADS = 64;

/** A device with the options for workers; `create` makes one without, and `spawn` a worker. */
export async function createWith(create, spawn, options) {
    const { worker = false, threads = 1 } = options;
    if (!Number.isInteger(threads) || threads < 1 || threads > MOST_THREADS) {
        throw invalid('threads', threads, `a whole number from 1 to ${MOST_THREADS}`);
    }
    const { backend, policy, halfPrecision } = options;
    const chosen = { backend, policy: copied(policy), threads: options.threads, halfPrecision };
    const again = (abort) => createWith(create, spawn, { ...chosen, worker, signal: abort?.signal });
    if (worker) {
        return RemoteDevice.start(spawn, chosen, options, again);
    }
    const device = await create({ ...chosen, signal: options.signal });
    return threads > 1 && device.backend === 'simd'
        ? helped(device, spawn, threads - 1, options, again)
        : device;
}
