// Adapters that a model learns, by a copy of the model in workers of its own, whose module has what tuning needs.

import * as check from './check.js';
import { start } from './loading.js';
import { RelampagoError } from '../common/error.js';
import { untilAborted } from '../common/until_aborted.js';

/**
 * Two indices of layers.
 * @param {any} value
 * @param {string} what
 */
function range(value, what) {
    if (!Array.isArray(value) || value.length !== 2) {
        throw check.invalid(what, value, 'an array of the first layer, and of the one after the last');
    }
    return value.map((layer, i) => check.count(layer, `${what}[${i}]`));
}

/** The checks of options; Rust checks that they are within their limits. */
export const TUNE = {
    rank: check.count,
    alpha: check.number,
    targets: check.texts,
    layers: range,
    epochs: check.count,
    learningRate: check.number,
    schedule: check.oneOf('constant', 'linear', 'cosine'),
    warmup: check.count,
    weightDecay: check.number,
    maxNorm: check.number,
    batch: check.count,
    maxTokens: check.count,
    heldBack: check.number,
    seed: check.seed,
    resume: check.bytes,
    threads: check.threads,
    source: (/** @type {any} */ value) => value,
    signal: check.abortSignal,
    onProgress: check.callable,
    onStep: check.callable,
};

/** A worker tunes once. */
const NUMBER = 1;

/**
 * Learns an adapter from examples as JSON: loads the model of a source anew, as `placed` says where. Returns the adapter's
 * files, its losses and its state.
 * @param {any} source
 * @param {any} placed
 * @param {string[]} examples
 * @param {any} options
 */
export async function learned(source, placed, examples, { signal, onProgress, onStep, ...options }) {
    const { engine } = await start(source, { ...placed, worker: true, signal, onProgress, isTuning: true });
    const tune = () => new Promise((resolve, reject) => {
        const push = (/** @type {any} */ progress) => {
            try {
                onStep?.(progress) === false && engine.cancel(NUMBER);
            } catch (error) {
                reject(error); // It is the caller's.
            }
        };
        engine.tune(NUMBER, examples, options, push).then(resolve, reject);
    });
    try {
        return await untilAborted(signal, tune, check.aborted);
    } catch (error) {
        const isLost = error instanceof RelampagoError && error.code === 'DEVICE_LOST';
        throw isLost ? new RelampagoError(error.code, `the copy that learns was lost, the model itself was not: ${error.message}`, error) : error;
    } finally {
        engine.dispose();
    }
}
