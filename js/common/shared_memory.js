// Memory that workers share, and how many of them are worth starting.

import { RelampagoError } from './error.js';

/** Pages of 64 KiB at the start: more than a module has in them. */
const INITIAL = 64;
/** The most pages that a memory can have, and the least that are worth a try. */
const MOST = 2 ** 16;
const LEAST = 2 ** 12;

/** The most threads that `'auto'` stands for. */
const MOST_CORES = 8;

/**
 * Returns the number of cores, as far as it can be known, at most 8: engines count a core that runs two threads twice.
 * @param {number} [threads] the threads that run at the same time
 */
export const coreCount = (threads = globalThis.navigator?.hardwareConcurrency ?? 1) => {
    return Math.min(MOST_CORES, threads > 4 ? threads >> 1 : threads);
};

/**
 * Returns the reason for one thread, if the number of threads that was asked for amounts to one.
 * @param {number | 'auto'} threads
 */
export const reasonForOne = (threads) => (threads === 1 ? 'one thread was asked for' : 'there is one core');

/** Returns why workers cannot share memory here; undefined where they can. */
export const obstacle = () => {
    if (globalThis.crossOriginIsolated === false) {
        return 'the page is not cross-origin isolated';
    }
    if ('Deno' in globalThis) {
        return 'Deno does not end workers that wait for memory';
    }
    return typeof SharedArrayBuffer === 'function' ? undefined : 'this engine has no memory that workers share';
};

/**
 * Returns a memory that may grow as far as the engine allows: some refuse to set 4 GiB of addresses aside.
 * @param {number} [maximum]
 * @returns {WebAssembly.Memory}
 */
export const sharedMemory = (maximum = MOST) => {
    try {
        return new WebAssembly.Memory({ initial: INITIAL, maximum, shared: true });
    } catch (/** @type {any} */ error) {
        if (maximum > LEAST) {
            return sharedMemory(maximum / 2);
        }
        throw new RelampagoError('OUT_OF_MEMORY', `there is no room for a shared memory: ${error.message}`, error);
    }
};
