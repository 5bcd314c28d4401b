// How a device with workers or threads is made, whatever the host's workers are.

import { coreCount, reasonForOne } from '../../common/shared_memory.js';
import { GpuDevice, invalid } from '../core.js';
import { copied } from './arguments.js';
import { RemoteDevice } from './device.js';
import { Link } from './link.js';
import { crew } from './threads.js';

const MOST_THREADS = 64;

/** Returns a number of threads. `atOnce` are those that run at the same time, if the host knows better than the engine. */
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
const isForGpu = async (backend = 'auto') => (backend === 'auto' ? GpuDevice.isAvailable() : backend !== 'simd');

/** Returns the instruction set of this thread's module: that of its device `here`, if there is one. */
const instructionSetOf = async (here, createHere) => {
    const device = here ?? await createHere({ backend: 'simd' });
    const { instructionSet } = device.info;
    here ?? device.dispose();
    return instructionSet;
};

/**
 * Starts a worker for each thread of a device. Returns the link to the workers and their number, or the reason for one thread.
 */
const crewFor = async (host, threads, backend, here, createHere) => {
    const count = counted(threads, host.threads);
    if (count === 1) {
        return { alone: reasonForOne(threads) };
    }
    if (await isForGpu(backend)) {
        return { alone: 'a GPU computes' };
    }
    // Where nobody asked for threads, a site without their files goes on with one.
    const withoutThem = (error) => {
        if (threads !== 'auto') {
            throw error;
        }
        return { alone: error.message };
    };
    return crew(host, count, await instructionSetOf(here, createHere)).catch(withoutThem);
};

/** Has a device say why it has one thread. */
const explained = (device, threadsReason) => {
    const { info } = device;
    return Object.defineProperty(device, 'info', { get: () => device.backend && { ...info, threadsReason } });
};

/**
 * Returns `GpuDevice.create` where workers or threads are asked for. `host.spawn` and `host.spawnSharing` start workers, with
 * a module of their own and with one that they share, which `host.compile` compiles.
 */
export const creating = (host) => {
    /** `createHere` is what it is elsewhere. */
    const create = async (options, createHere) => {
        const { worker = false, threads = worker ? 'auto' : 1, backend, policy, halfPrecision, signal } = options;
        counted(threads);
        const chosen = { backend, policy: copied(policy), halfPrecision };
        const again = (abort) => create({ ...chosen, worker, threads, signal: abort?.signal }, createHere);
        const here = worker ? undefined : await createHere({ ...chosen, signal });
        const { link, alone, count } = await crewFor(host, threads, here?.backend ?? backend, here, createHere);
        if (here && !link) {
            return explained(here, alone);
        }
        try {
            here?.leaveTo(count);
            const there = here ? { ...chosen, backend: 'simd' } : chosen;
            return await RemoteDevice.start(link ?? new Link([host.spawn]), there, options, again, { here, alone });
        } catch (error) {
            here?.dispose();
            throw error;
        }
    };
    return create;
};
