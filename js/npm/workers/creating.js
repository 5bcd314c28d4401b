// How a device with workers or threads is opened, whatever the host's workers are.

import { coreCount, reasonForOne } from '../../common/shared_memory.js';
import { ModuleDevice, invalid } from '../core.js';
import { copied } from './arguments.js';
import { RemoteDevice } from './device.js';
import { Link } from './link.js';
import { crew } from './threads.js';

/**
 * @import { DeviceExecutor } from '../executors.js'
 * @import { Opened } from '../opening.js'
 * @import { AnyWorker } from './link.js'
 */

/**
 * The functions of a host: `spawn` starts a worker with a module of its own, and `spawnSharing` one that shares the module that
 * `compile` compiles. `threads` is the number that run at the same time, if the host knows better than the engine.
 * @typedef {{
 *     spawn: () => AnyWorker, spawnSharing: () => AnyWorker,
 *     compile: (url: URL) => Promise<WebAssembly.Module>, threads?: number,
 * }} Host
 */

const MOST_THREADS = 64;

/**
 * Returns a number of threads. `atOnce` are those that run at the same time, if the host knows better than the engine.
 * @param {any} threads
 * @param {number} [atOnce]
 * @returns {number}
 */
const counted = (threads, atOnce) => {
    if (threads === 'auto') {
        return coreCount(atOnce);
    }
    if (!Number.isInteger(threads) || threads < 1 || threads > MOST_THREADS) {
        throw invalid('threads', threads, `a whole number from 1 to ${MOST_THREADS}, or 'auto'`);
    }
    return threads;
};

/** Whether a device of this back-end will be one of a GPU. */
const isForGpu = async (backend = 'auto') => (backend === 'auto' ? ModuleDevice.isAvailable() : backend !== 'simd');

/**
 * Returns the instruction set of this thread's module: that of its device `here`, if there is one.
 * @param {DeviceExecutor | undefined} here
 * @returns {Promise<string>}
 */
const instructionSetOf = async (here) => {
    const device = here ?? await ModuleDevice.create({ backend: 'simd' });
    const { instructionSet } = device.info;
    here ?? device.free?.();
    return instructionSet;
};

/**
 * Starts a worker for each thread of a device. Returns the link to the workers and their number, or the reason for one thread.
 * @param {Host} host
 * @param {any} threads
 * @param {any} backend
 * @param {DeviceExecutor | undefined} here
 * @returns {Promise<{ alone?: string, link?: Link, count?: number }>}
 */
const crewFor = async (host, threads, backend, here) => {
    const count = counted(threads, host.threads);
    if (count === 1) {
        return { alone: reasonForOne(threads) };
    }
    if (await isForGpu(backend)) {
        return { alone: 'a GPU computes' };
    }
    // Where nobody asked for threads, a site without their files goes on with one.
    const withoutThem = (/** @type {any} */ error) => {
        if (threads !== 'auto') {
            throw error;
        }
        return { alone: error.message };
    };
    return crew(host, count, await instructionSetOf(here)).catch(withoutThem);
};

/**
 * Returns the function that opens devices where workers or threads are asked for.
 * @param {Host} host
 */
export const creating = (host) => {
    /**
     * @param {any} options
     * @returns {Promise<Opened>}
     */
    const create = async (options) => {
        const { worker = false, threads = worker ? 'auto' : 1, backend, policy, halfPrecision, signal } = options;
        counted(threads);
        const chosen = { backend, policy: copied(policy), halfPrecision };
        const again = async (/** @type {any} */ abort) =>
            (await create({ ...chosen, worker, threads, signal: abort?.signal })).executor;
        const here = worker ? undefined : await ModuleDevice.create({ ...chosen, signal });
        const { link, alone, count } = await crewFor(host, threads, here?.backend ?? backend, here);
        if (here && !link) {
            return { executor: here, threadsReason: alone };
        }
        try {
            here?.leaveTo(count ?? 1);
            const there = here ? { ...chosen, backend: 'simd' } : chosen;
            const executor = await RemoteDevice.start(link ?? new Link([host.spawn]), there, options, again, here);
            return { executor, threadsReason: alone };
        } catch (error) {
            here?.free?.();
            throw error;
        }
    };
    return create;
};
