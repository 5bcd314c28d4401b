// Requests for a model's file, and the errors of a download.

import { RelampagoError } from './error.js';
import { host } from './host.js';
import { linked } from './linked.js';

/** Error → 'unreachable' or 'changed'. `instanceof` does not tell subclasses of RelampagoError apart. */
const kinds = new WeakMap();

/** Returns the kind of a failed download, where something can be done about it. */
export const kindOf = (error) => kinds.get(error);

export function failure(url, reason, { cause, kind } = {}) {
    const error = new RelampagoError('NETWORK', `the model could not be loaded from ${url}: ${reason}`, cause);
    kinds.set(error, kind);
    return error;
}

/** Whether an answer is likely to be another one later. */
export const isTransient = (status) => status === 408 || status === 429 || status >= 500;

/**
 * Requests a URL. `no-store` keeps large files out of the browser's HTTP cache, which also lets only one request
 * for a URL proceed at a time.
 */
export const request = (url, signal, range) =>
    fetch(url, { signal, cache: 'no-store', ...(range && { headers: { range } }) });

const RANGE = /^bytes (\d+)-\d+\/(\d+)$/;

/** Reads an answer's headers: `from` is the first byte if the answer is a range, `size` is 0 if it is unknown. */
export function describe({ headers }) {
    const range = RANGE.exec(headers.get('content-range') ?? '');
    // The length of compressed content is not that of the file.
    const length = headers.has('content-encoding') ? 0 : Number(headers.get('content-length'));
    const size = range ? Number(range[2]) : length;
    const modified = headers.get('last-modified');
    const version = headers.get('etag') ?? (modified && size ? `${modified}, ${size} bytes` : undefined);
    return { size, version, from: range ? Number(range[1]) : undefined };
}

/**
 * Returns a signal that is also aborted after a long silence: networks may be lost without notice. Call `heard` when
 * bytes arrive, `rest` while no bytes are expected, and `end` when the transfer is over.
 */
export function untilSilent(signal) {
    const { silenceMs } = host.download;
    const { controller, unlink } = linked(signal);
    const giveUp = () => controller.abort(new Error(`nothing arrived for ${silenceMs / 1000} s`));
    let timer;
    const rest = () => clearTimeout(timer);
    const heard = () => {
        rest();
        timer = setTimeout(giveUp, silenceMs);
    };
    const end = () => {
        rest();
        unlink();
        controller.abort();
    };
    heard();
    return { signal: controller.signal, heard, rest, end };
}
