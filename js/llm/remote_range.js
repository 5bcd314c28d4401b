// A range of bytes of a file on a server.

import { describe, failure, isSameFile, isTransient, request, untilSilent } from './http.js';
import { host } from './host.js';
import { reading } from './stream.js';

/**
 * @import { Version } from './http.js'
 * @typedef {Version & { url: string }} RemoteFile a file on a server
 * @typedef {{ start: number, bytes: Uint8Array, filled: number }} Part the bytes from `start` on, of which some are filled
 */

/** The part of a range after whose arrival another attempt is made, whatever the number of attempts. */
const PROGRESS = 1 / 8;

/**
 * Fills `bytes` from byte `start` of a file. After a failure of the network it continues where the answer ended.
 * @param {RemoteFile} file
 * @param {number} start
 * @param {Uint8Array} bytes
 * @param {AbortSignal | undefined} signal
 * @param {(bytes: number) => void} arrived
 */
export async function readRange(file, start, bytes, signal, arrived) {
    const { attempts, waitMs } = host.download;
    const part = { start, bytes, filled: 0 };
    for (let failures = 0; ;) {
        const before = part.filled;
        const error = await fill(part, file, signal, arrived);
        if (!error) {
            return;
        }
        failures = part.filled - before >= bytes.length * PROGRESS ? 1 : failures + 1;
        if (failures === attempts) {
            const place = `byte ${start + part.filled} of ${file.size}`;
            throw failure(file.url, `it broke off ${failures} times, at last at ${place}: ${error.message}`, { cause: error });
        }
        await wait(waitMs * 2 ** (failures - 1), signal);
    }
}

/**
 * Fetches the missing bytes of a part. Returns an error if another attempt may help, and throws other errors.
 * @param {Part} part
 * @param {RemoteFile} file
 * @param {AbortSignal | undefined} signal
 * @param {(bytes: number) => void} arrived
 * @returns {Promise<Error | undefined>}
 */
async function fill(part, file, signal, arrived) {
    const connection = untilSilent(signal);
    try {
        const from = part.start + part.filled;
        const range = `bytes=${from}-${part.start + part.bytes.length - 1}`;
        const response = await request(file.url, connection.signal, range).catch((/** @type {any} */ error) => ({ error }));
        signal?.throwIfAborted();
        if ('error' in response) {
            return response.error;
        }
        if (isTransient(response.status)) {
            return new Error(`the server answers ${response.status}`);
        }
        requireSame(file, response, from);
        const error = response.body && await append(part, response.body, (bytes) => {
            connection.heard();
            arrived(bytes);
        });
        signal?.throwIfAborted();
        return error === null ? new Error('the answer is empty') : error;
    } finally {
        connection.end();
    }
}

/**
 * Appends a body to a part. Returns an error if the part lacks bytes then.
 * @param {Part} part
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} body
 * @param {(bytes: number) => void} arrived
 * @returns {Promise<Error | undefined>}
 */
async function append(part, body, arrived) {
    const read = reading(body);
    for (;;) {
        const next = await read().catch((/** @type {any} */ error) => ({ error }));
        const missing = part.bytes.length - part.filled;
        if (missing === 0) {
            return undefined;
        }
        if ('error' in next) {
            return next.error;
        }
        if (next.done || !next.value) {
            return new Error('the server closed the connection');
        }
        const fits = next.value.subarray(0, missing);
        part.bytes.set(fits, part.filled);
        part.filled += fits.length;
        arrived(fits.length);
    }
}

/**
 * Checks that an answer is the range from byte `from` of the file as it was first. `If-Range` would be a header for
 * which other sites need to be asked first, and the answer says which version it is of, anyway.
 * @param {RemoteFile} file
 * @param {Response} response
 * @param {number} from
 */
function requireSame(file, response, from) {
    const { url, size } = file;
    const { ok, status } = response;
    const now = describe(response);
    if (status === 416 || (ok && !isSameFile(file, now))) {
        const shown = (/** @type {Version} */ { size, version }) => `${version ?? 'unnamed'} of ${size || 'unknown'} bytes`;
        const change = `its version is ${shown(now)}, but was ${shown(file)}`;
        throw failure(url, `it changed during the download: ${change}`, { kind: 'changed' });
    }
    if (status !== 206 || now.from !== from) {
        throw failure(url, `the server answers ${status} to a request for a range from byte ${from} of ${size}`);
    }
}

/**
 * Waits, or throws the reason of an aborted signal.
 * @param {number} ms
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<void>}
 */
function wait(ms, signal) {
    return new Promise((resolve, reject) => {
        const end = () => {
            clearTimeout(timer);
            signal?.removeEventListener('abort', end);
            signal?.aborted ? reject(signal.reason) : resolve();
        };
        const timer = setTimeout(end, ms);
        signal?.addEventListener('abort', end);
    });
}
