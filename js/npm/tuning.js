// Pages remember from one visit to the next which kernels were measured to be the fastest: the page's IndexedDB
// holds a device's choices, as bytes that know their version, under the adapter's name. Workers do not.

import { ops } from '#ops';
import { classOf } from './arrays.js';
import { invalid } from './checks.js';
import { RelampagoError } from '../common/error.js';
import { requireNames } from '../common/options.js';

/** @import { DeviceExecutor } from './executors.js' */

/**
 * @param {IDBRequest} request
 * @returns {Promise<any>}
 */
const settled = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
});

/**
 * Returns the result of a method of the store. With a `mode` for writing it creates a missing store.
 * @param {IDBTransactionMode | undefined} mode
 * @param {'get' | 'put'} method
 * @param {any[]} args
 */
async function ask(mode, method, ...args) {
    try {
        const opening = indexedDB.open('relampago');
        opening.onupgradeneeded = () =>
            mode ? opening.result.createObjectStore('choices') : opening.transaction?.abort();
        const database = await settled(opening);
        try {
            const store = database.transaction('choices', mode).objectStore('choices');
            return await settled(store[method](...args));
        } finally {
            database.close(); // Even of another's database, which that one could not change otherwise.
        }
    } catch {
        // It is but a cache: where nothing can be kept, choices hold for this visit.
    }
}

/**
 * Gives a device the choices of earlier visits.
 * @param {DeviceExecutor} device
 */
export async function remember(device) {
    const { adapter } = device.info;
    const kept = adapter && await ask(undefined, 'get', adapter);
    if (classOf(kept) === 'Uint8Array') {
        await device.adoptChoices(kept);
    }
}

/**
 * Measures the kernels for operations.
 * @param {DeviceExecutor} device
 * @param {any} operations
 * @param {any} options
 */
export async function tune(device, operations, options) {
    const place = (/** @type {any} */ list) => (Array.isArray(list) ? ops.findIndex(([name]) => name === list[0]) : -1);
    const places = Array.isArray(operations) ? operations.map(place) : [-1];
    if (places.includes(-1)) {
        throw new RelampagoError('INVALID_ARGUMENT', '`operations` must be lists of a name and arguments');
    }
    const tunings = [];
    for (const [i, operation] of operations.entries()) {
        const found = await device.tuneOne(places[i], operation.slice(1), options);
        if (found.length > 0) {
            const times = [];
            for (let at = 0; at < found.length; at += 2) {
                times.push({ kernel: found[at], seconds: found[at + 1] });
            }
            tunings.push({ operation, times });
        }
    }
    if (tunings.length > 0) {
        // Beside those that others kept meanwhile.
        await remember(device);
        await ask('readwrite', 'put', await device.choices(), device.info.adapter);
    }
    return tunings;
}

const ON_FAULT = ['turn-off', 'fail'];

/**
 * Checks the device's results.
 * @param {DeviceExecutor} device
 * @param {any} options
 */
export async function verify(device, options) {
    options == null || requireNames(options, ['onFault', 'signal']);
    const { onFault = ON_FAULT[0], signal } = options ?? {};
    if (!ON_FAULT.includes(onFault)) {
        throw invalid('onFault', onFault, "'turn-off' or 'fail'");
    }
    const { cases, turnedOff } = await device.verifyNow(onFault === 'fail', signal && { signal });
    await device.refresh?.();
    return { cases: cases.map((one) => ({ ...one, kernels: one.kernels.split(' '), passed: one.error <= one.bound })), turnedOff };
}
