// Work on the parts of a file: several at a time, results in order.

import { linked } from './linked.js';

/** The number of parts that load at the same time: enough to use a connection, few enough for memory. */
const AT_A_TIME = 3;

/**
 * Yields `get(0, signal)` to `get(count - 1, signal)` in order. At the end no call is running any more.
 * @template T
 * @param {number} count
 * @param {(index: number, signal: AbortSignal) => Promise<T>} get
 * @param {AbortSignal} [signal]
 */
export async function* inOrder(count, get, signal) {
    const { controller, unlink } = linked(signal);
    /** @type {Promise<T>[]} */
    const underway = [];
    try {
        for (let next = 0; underway.length > 0 || next < count;) {
            while (next < count && underway.length < AT_A_TIME) {
                const part = get(next++, controller.signal);
                part.catch(() => {}); // It is awaited in its turn, or an earlier one fails.
                underway.push(part);
            }
            yield await /** @type {Promise<T>} */ (underway.shift());
        }
    } finally {
        controller.abort();
        unlink();
        await Promise.allSettled(underway);
    }
}
