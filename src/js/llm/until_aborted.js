import { aborted } from './check.js';

/** Starts work and waits for it, or until a signal aborts it: then calls `cancel`, and does not wait for its effect. */
export async function untilAborted(signal, start, cancel) {
    if (signal?.aborted) {
        throw aborted(signal);
    }
    let abort;
    const stopped = new Promise((_, reject) => {
        abort = () => {
            cancel();
            reject(aborted(signal));
        };
    });
    signal?.addEventListener('abort', abort);
    try {
        return await Promise.race([start(), stopped]);
    } finally {
        signal?.removeEventListener('abort', abort);
    }
}
