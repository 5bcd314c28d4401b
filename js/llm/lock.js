// Locks among the tabs and workers of an origin.

/**
 * Waits for a lock. Returns the function that releases it, as the end of a tab does, too.
 * @param {string} name
 * @param {AbortSignal} [signal]
 * @returns {Promise<(value?: unknown) => void>}
 */
export async function lock(name, signal) {
    if (!globalThis.navigator?.locks) {
        return () => {};
    }
    return new Promise((resolve, reject) => {
        const hold = () => new Promise(resolve);
        navigator.locks.request(name, signal ? { signal } : {}, hold).catch(reject);
    });
}
