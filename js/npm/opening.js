// Opens what computes for a device: in this thread, or with the script that is loaded for workers and threads.

import { GpuDevice } from '#computing';
import { invalid } from './checks.js';
import { RelampagoError } from '../common/error.js';

/** @import { DeviceExecutor } from './executors.js' */

/**
 * The executor of a device, and why there is one thread where there could be more.
 * @typedef {{ executor: DeviceExecutor, threadsReason?: string }} Opened
 */

export const host = {
    /**
     * Loads the script for workers; `node.js` replaces it.
     * @type {() => Promise<{ create: (options: any) => Promise<Opened> }>}
     */
    workers: () => import('./workers/create.js'),
};

/**
 * @param {any} options
 * @returns {Promise<Opened>}
 */
export const open = async (options) => {
    const { worker = false } = options ?? {};
    if (typeof worker !== 'boolean') {
        throw invalid('worker', worker, 'true or false');
    }
    if (!worker && (options?.threads ?? 1) === 1) {
        return { executor: await GpuDevice.create(options) };
    }
    const workers = await host.workers().catch((error) => {
        throw new RelampagoError('UNSUPPORTED', `no worker could be started: ${error.message}`, error);
    });
    return workers.create(options);
};
