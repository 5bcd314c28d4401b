// A file on a server.

import { describe, failure, isTransient, request, untilSilent } from './http.js';
import { reading } from './stream.js';

/**
 * @import { Version, untilSilent as Silent } from './http.js'
 * @typedef {ReturnType<typeof Silent>} Connection
 * @typedef {Version & { url: string, body?: ReadableStream<Uint8Array<ArrayBuffer>> | null, connection?: Connection }} RemoteFile
 * @typedef {Required<Pick<RemoteFile, 'url' | 'size' | 'connection'>> & { body: ReadableStream<Uint8Array<ArrayBuffer>> }} Streamed
 * @typedef {{ response: Response, connection: Connection }} Answer
 */

/**
 * Asks for a file. Returns its size and version, either of which may be unknown, and `body` with all of it where
 * the server does not send ranges, or not what tells that they are of one version, on a `connection` to be ended.
 * @param {string} url
 * @param {AbortSignal} [signal]
 * @returns {Promise<RemoteFile>}
 */
export async function connect(url, signal) {
    const ranged = await requestRange(url, signal);
    if (ranged?.response.status === 206) {
        const { size, version, from, isExact } = describe(ranged.response);
        await ranged.response.arrayBuffer().catch(() => {}); // So that the connection can be used again.
        ranged.connection.end();
        // Ranges of a file whose version is not known exactly may be of several versions.
        if (from === 0 && isExact) {
            return { url, size, version };
        }
    }
    const isAnswer = ranged && ![206, 416].includes(ranged.response.status);
    return whole(url, isAnswer ? ranged : await requestWhole(url, signal));
}

/**
 * Requests a URL, and gives up if no answer comes.
 * @param {string} url
 * @param {AbortSignal | undefined} signal
 * @param {string} [range]
 * @returns {Promise<Answer>}
 */
async function requestInTime(url, signal, range) {
    const connection = untilSilent(signal);
    try {
        return { response: await request(url, connection.signal, range), connection };
    } finally {
        connection.rest();
    }
}

/**
 * Requests one byte. Other sites may refuse requests with ranges, or hide which range they send.
 * @param {string} url
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<Answer | undefined>}
 */
async function requestRange(url, signal) {
    // The ranges of other schemes differ from browser to browser.
    return /^https?:/.test(url) ? requestInTime(url, signal, 'bytes=0-0').catch(() => undefined) : undefined;
}

/**
 * @param {string} url
 * @param {AbortSignal | undefined} signal
 */
async function requestWhole(url, signal) {
    try {
        return await requestInTime(url, signal);
    } catch (/** @type {any} */ error) {
        throw signal?.aborted ? error : failure(url, error.message, { cause: error, kind: 'unreachable' });
    }
}

/**
 * @param {string} url
 * @param {Answer} answer
 * @returns {RemoteFile}
 */
function whole(url, { response, connection }) {
    const { ok, status, body } = response;
    if (!ok) {
        connection.end();
        throw failure(url, `the server answers ${status}`, { kind: isTransient(status) ? 'unreachable' : undefined });
    }
    const { size, version } = describe(response);
    return { url, size, version, body, connection };
}

/**
 * The pieces of a body, each until the next is asked for. `arrived` is called with the length of each.
 * @param {Streamed} file
 * @param {AbortSignal | undefined} signal
 * @param {(bytes: number) => void} arrived
 */
export async function* readBody({ url, size, body, connection }, signal, arrived) {
    const read = reading(body);
    let loaded = 0;
    for (;;) {
        connection.heard();
        const next = await read().catch((/** @type {any} */ error) => ({ error }));
        connection.rest();
        if ('error' in next) {
            const { error } = next;
            const reason = `it broke off after ${loaded} bytes: ${error.message}`;
            throw signal?.aborted ? error : failure(url, reason, { cause: error });
        }
        const { done, value } = next;
        if (done || !value) {
            break;
        }
        loaded += value.length;
        arrived(value.length);
        yield value;
    }
    if (size && loaded !== size) {
        throw failure(url, `it ended after ${loaded} of ${size} bytes`);
    }
}
