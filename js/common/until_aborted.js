/**
 * Starts work and waits for it, or until a signal aborts it: then calls `cancel`, and rejects with what `reason` makes
 * without waiting for its effect. It imports nothing, since scripts with a class of errors from elsewhere have it, too.
 * @template T
 * @param {AbortSignal | undefined} signal
 * @param {() => T | Promise<T>} start
 * @param {(signal: AbortSignal) => unknown} reason
 * @returns {Promise<T>}
 */
export async function untilAborted(signal, start, reason, cancel = () => {}) {
    if (!signal) {
        return start();
    }
    if (signal.aborted) {
        throw reason(signal);
    }
    let abort = () => {};
    /** @type {Promise<never>} */
    const stopped = new Promise((_, reject) => {
        abort = () => {
            cancel();
            reject(reason(signal));
        };
    });
    signal.addEventListener('abort', abort);
    try {
        return await Promise.race([start(), stopped]);
    } finally {
        signal.removeEventListener('abort', abort);
    }
}
