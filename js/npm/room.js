// Room for finalizers. The collector does not know of the memory of the module, of GPUs and of workers, and finalizers run
// between tasks: a loop that awaits nothing but the module would leave everything in memory.

import { pause } from '../common/pause.js';
import { GpuDevice, allocatedBytes } from '#computing';

/** The number of bytes by which the used memory may grow before finalizers get a task. */
const STEP = 1 << 27;

let most = STEP;
/** The least that `most` may be, after a collector that found little. */
let least = 0;
/** @type {Promise<void> | undefined} */
let making;

/** The bytes that workers hold. */
let remote = 0;

const bytesInUse = () => allocatedBytes() + GpuDevice.gpuBytes() + remote;

/** Whether the memory in use has grown by a step since it was least, or since the last task for finalizers. */
export const isFull = () => {
    const bytes = bytesInUse();
    most = Math.max(Math.min(most, bytes + STEP), least);
    return bytes > most;
};

/** Has the collector look for objects, and resolves after a task in which finalizers run. */
export const makeRoom = () => (making ??= collect().finally(() => (making = undefined)));

const collect = async () => {
    const before = bytesInUse();
    try {
        // The collector counts the bytes of buffers, which take no memory until something is written to them.
        for (let i = 0; i < 4; i++) {
            new ArrayBuffer(1 << 27);
        }
    } catch {} // There is no room for them.
    await pause();
    const after = bytesInUse();
    // Where little was garbage, as in loops that dispose of large results, as much will be in use again.
    least = before - after < STEP / 2 ? before + STEP : 0;
    most = after + STEP;
};

/**
 * Counts bytes that a worker holds from now on, or no longer, and makes room if they are too many.
 * @param {number} bytes
 */
export const countRemote = (bytes) => {
    remote += bytes;
    bytes > 0 && isFull() && makeRoom();
};
