// The parts of the package that the script for workers uses, too. It has no module of its own: `index.js` exports these.

import { GpuCommandBatch, GpuDevice } from '#computing';
import { MATMUL } from './operations.js';

/** @import { DeviceExecutor } from './executors.js' */

export { ops } from '#ops';
export { RelampagoError } from '../common/error.js';
export { classOf } from './arrays.js';
export { checked, foreign, invalid, list, unlessAborted } from './checks.js';
export { DeviceBuffer } from './device_buffer.js';
export { MATMUL } from './operations.js';
export { countRemote } from './room.js';

/** A device of this thread. */
export const openHere = (/** @type {any} */ options) => GpuDevice.create(options);

export const isGpuAvailable = () => GpuDevice.isAvailable();

export const compiledModule = () => GpuDevice.module();

/**
 * Returns the length of the result of the operation at an index in the op table, whose inputs are lengths. Throws the module's
 * error about wrong parameters.
 * @param {number} index
 * @param {any[]} values
 */
export const lengthOfResult = (index, values) => GpuCommandBatch.lengthOf(index, values);

/**
 * Returns the length of a matmul of `m` rows, which are `length` elements, with `k × n` weights.
 * @param {number} length
 * @param {any} m
 * @param {number} k
 * @param {number} n
 */
export const lengthOfMatmul = (length, m, k, n) => lengthOfResult(MATMUL, [length, k * n, m, k, n]);
