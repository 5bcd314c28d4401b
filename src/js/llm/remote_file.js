// A file on a server.

import { describe, failure, isTransient, request, untilSilent } from './http.js';

/**
 * Asks for a file. Returns its size and version, either of which may be unknown, and `body` with all of it where
 * the server does not send ranges.
 */
export async function connect(url, signal) {
    const ranged = await requestRange(url, signal);
    if (ranged?.status === 206) {
        const { size, version, from } = describe(ranged);
        await ranged.arrayBuffer().catch(() => {}); // So that the connection can be used again.
        if (from === 0) {
            return { url, size, version };
        }
    }
    const isAnswer = ranged && ranged.status !== 206 && ranged.status !== 416;
    return whole(url, isAnswer ? ranged : await requestWhole(url, signal));
}

/** Requests one byte. Other sites may refuse requests with ranges, or hide which range they send. */
async function requestRange(url, signal) {
    // The ranges of other schemes differ from browser to browser.
    return /^https?:/.test(url) ? requestInTime(url, signal, 'bytes=0-0').catch(() => {}) : undefined;
}

/** Requests a URL, and gives up if no answer comes; its body may take as long as it likes. */
async function requestInTime(url, signal, range) {
    const connection = untilSilent(signal);
    try {
        return await request(url, connection.signal, range);
    } finally {
        connection.rest();
    }
}

async function requestWhole(url, signal) {
    try {
        return await requestInTime(url, signal);
    } catch (error) {
        throw signal?.aborted ? error : failure(url, error.message, { cause: error, kind: 'unreachable' });
    }
}

function whole(url, response) {
    const { ok, status, body } = response;
    if (!ok) {
        throw failure(url, `the server answers ${status}`, { kind: isTransient(status) ? 'unreachable' : undefined });
    }
    const { size, version } = describe(response);
    return { url, size, version, body };
}

/** The pieces of a body. `arrived` is called with the length of each. */
export async function* readBody({ url, size, body }, signal, arrived) {
    const reader = body.getReader();
    let loaded = 0;
    try {
        for (;;) {
            const { done, value, error } = await reader.read().catch((error) => ({ error }));
            if (error) {
                throw signal?.aborted ? error : failure(url, `it broke off after ${loaded} bytes: ${error.message}`, { cause: error });
            }
            if (done) {
                break;
            }
            loaded += value.length;
            arrived(value.length);
            yield value;
        }
    } finally {
        await reader.cancel().catch(() => {});
    }
    if (size && loaded !== size) {
        throw failure(url, `it ended after ${loaded} of ${size} bytes`);
    }
}
