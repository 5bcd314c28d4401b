// A file on a server, as one stream or by ranges of bytes.

import { RelampagoError } from './error.js';
import { host } from './host.js';

/** Error → 'unreachable' or 'changed'. `instanceof` does not tell subclasses of RelampagoError apart. */
const kinds = new WeakMap();

/** What kind of failure of a download an error is, if something can be done about it. */
export const kindOf = (error) => kinds.get(error);

function failure(url, reason, { cause, kind } = {}) {
    const error = new RelampagoError('NETWORK', `the model could not be loaded from ${url}: ${reason}`, cause);
    kinds.set(error, kind);
    return error;
}

/** Whether an answer is likely to be another one later. */
const isTransient = (status) => status === 408 || status === 429 || status >= 500;

/**
 * Requests a URL. `no-store` keeps large files out of the browser's HTTP cache, which also lets only one request
 * for a URL proceed at a time.
 */
const request = (url, signal, range) =>
    fetch(url, { signal, cache: 'no-store', ...(range && { headers: { range } }) });

const RANGE = /^bytes (\d+)-\d+\/(\d+)$/;

/** Reads an answer's headers: `from` is the first byte if the answer is a range, `size` is 0 if it is unknown. */
function describe({ headers }) {
    const range = RANGE.exec(headers.get('content-range') ?? '');
    // The length of compressed content is not that of the file.
    const length = headers.has('content-encoding') ? 0 : Number(headers.get('content-length'));
    const size = range ? Number(range[2]) : length;
    const modified = headers.get('last-modified');
    const version = headers.get('etag') ?? (modified && size ? `${modified}, ${size} bytes` : undefined);
    return { size, version, from: range ? Number(range[1]) : undefined };
}

/**
 * Asks for a file. Returns its size and version, either of which may be unknown, and `body` with all of it where
 * the server does not send ranges.
 */
export async function connect(url, signal) {
    // Other schemes have answers for ranges that differ from browser to browser.
    const isHttp = /^https?:/.test(url);
    const ranged = isHttp ? await request(url, signal, 'bytes=0-0').catch(() => {}) : undefined;
    if (ranged?.status === 206) {
        const { size, version, from } = describe(ranged);
        await ranged.arrayBuffer().catch(() => {}); // So that the connection can be used again.
        if (from === 0) {
            return { url, size, version };
        }
    }
    // Another site may refuse requests with ranges, or hide which range it sends.
    const isAnswer = ranged && ranged.status !== 206 && ranged.status !== 416;
    return whole(url, isAnswer ? ranged : await requestWhole(url, signal));
}

async function requestWhole(url, signal) {
    try {
        return await request(url, signal);
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

/** Fetches a range of bytes. After a failure of the network it goes on where that broke off. */
export async function readRange(file, start, length, signal, arrived) {
    const { attempts, waitMs } = host.download;
    const part = { start, bytes: new Uint8Array(length), filled: 0 };
    for (let attempt = 1; ; attempt++) {
        const error = await fill(part, file, signal, arrived);
        if (!error) {
            return part.bytes;
        }
        if (attempt === attempts) {
            const place = `${start + part.filled} of ${file.size}`;
            throw failure(file.url, `it broke off at byte ${place} in each of ${attempts} attempts: ${error.message}`, { cause: error });
        }
        await wait(waitMs * 2 ** (attempt - 1), signal);
    }
}

/** Fetches what a part lacks. Returns an error if another attempt may help, and throws others. */
async function fill(part, file, signal, arrived) {
    const { start, bytes } = part;
    const from = start + part.filled;
    const response = await request(file.url, signal, `bytes=${from}-${start + bytes.length - 1}`).catch((error) => ({ error }));
    if (response.error || isTransient(response.status)) {
        signal?.throwIfAborted();
        return response.error ?? new Error(`the server answers ${response.status}`);
    }
    requireSame(file, response, from);
    const reader = response.body.getReader();
    try {
        for (;;) {
            const { done, value, error } = await reader.read().catch((error) => ({ error }));
            if (part.filled === bytes.length) {
                return undefined;
            }
            if (error) {
                signal?.throwIfAborted();
                return error;
            }
            if (done) {
                return new Error('the server closed the connection');
            }
            const fits = value.subarray(0, bytes.length - part.filled);
            bytes.set(fits, part.filled);
            part.filled += fits.length;
            arrived(fits.length);
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}

/**
 * Checks that an answer is the range from byte `from` of the file as it was first. `If-Range` would be a header for
 * which other sites need to be asked first, and the answer says which version it is of, anyway.
 */
function requireSame({ url, size, version }, response, from) {
    const { ok, status } = response;
    const now = describe(response);
    const isSame = now.size === size && now.version === version;
    if (status === 416 || (ok && !isSame)) {
        const shown = ({ size, version }) => `${version ?? 'unnamed'} of ${size} bytes`;
        throw failure(url, `it changed during the download: its version is ${shown(now)}, but was ${shown({ size, version })}`, { kind: 'changed' });
    }
    if (status !== 206 || now.from !== from) {
        throw failure(url, `the server answers ${status} to a request for a range from byte ${from} of ${size}`);
    }
}

/** Waits, or throws what a signal is aborted with. */
function wait(ms, signal) {
    return new Promise((resolve, reject) => {
        const abort = () => {
            clearTimeout(timer);
            reject(signal.reason);
        };
        const timer = setTimeout(() => {
            signal?.removeEventListener('abort', abort);
            resolve();
        }, ms);
        signal?.addEventListener('abort', abort, { once: true });
        if (signal?.aborted) abort();
    });
}
