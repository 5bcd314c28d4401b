/**
 * Returns a controller that a signal aborts, too, until `unlink` is called.
 * @param {AbortSignal | null | undefined} signal
 */
export function linked(signal) {
    const controller = new AbortController();
    const abort = () => controller.abort(signal?.reason);
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) {
        abort();
    }
    return { controller, unlink: () => signal?.removeEventListener('abort', abort) };
}
