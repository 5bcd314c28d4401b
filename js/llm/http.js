// Requests for a model's file, and the errors of a download.

import { RelampagoError } from '../common/error.js';
import { host } from './host.js';
import { linked } from './linked.js';

/**
 * @typedef {'unreachable' | 'changed'} Kind a kind of failed downloads that the program reacts to
 * @typedef {{ size: number, version?: string }} Version the size of a file, 0 if it is not known, and its version
 */

/**
 * Kinds by their errors. `instanceof` does not tell subclasses of RelampagoError apart.
 * @type {WeakMap<object, Kind | undefined>}
 */
const kinds = new WeakMap();

/**
 * Returns the kind of a failed download, if the program can react to it.
 * @param {any} error
 */
export const kindOf = (error) => kinds.get(error);

/**
 * @param {string} url
 * @param {string} reason
 * @param {{ cause?: unknown, kind?: Kind }} [details]
 */
export function failure(url, reason, { cause, kind } = {}) {
    const error = new RelampagoError('NETWORK', `the model could not be loaded from ${url}: ${reason}`, cause);
    kinds.set(error, kind);
    return error;
}

/**
 * Whether an answer is likely to be another one later.
 * @param {number} status
 */
export const isTransient = (status) => status === 408 || status === 429 || status >= 500;

/**
 * Requests a URL. `no-store` keeps large files out of the browser's HTTP cache, which also lets only one request
 * for a URL proceed at a time.
 * @param {string} url
 * @param {AbortSignal} signal
 * @param {string} [range]
 */
export const request = (url, signal, range) =>
    fetch(url, { signal, cache: 'no-store', ...(range && { headers: { range } }) });

const RANGE = /^bytes (\d+)-\d+\/(\d+)$/;

/** ETags that identify no version: empty ones, with or without quotation marks. */
const NO_TAG = /^(w\/)?("")?$/i;

/** Dates before are those of packers and file systems that date all files alike, such as 1970, 1980 and 1985. */
const FIRST_DATE = Date.UTC(2000);

/**
 * The date of a file's last change, as the server writes it; undefined unless the answer is at least a second younger,
 * since the file may change twice in a second. Browsers hide the date of another site's answer: then it counts as younger.
 * @param {Headers} headers
 */
function dateOf(headers) {
    const text = headers.get('last-modified') ?? '';
    // `Date.parse` makes a year of any number.
    const modified = text.endsWith(' GMT') ? Date.parse(text) : NaN;
    const answered = Date.parse(headers.get('date') ?? '');
    return modified >= FIRST_DATE && !(answered - modified < 1000) ? text : undefined;
}

/**
 * The version of a file: a strong ETag, or a weak one and the date with the length. `isExact` is whether files
 * of the same version have the same bytes, which a weak ETag does not promise.
 * @param {Headers} headers
 * @param {number} size
 */
function versionOf(headers, size) {
    const etag = headers.get('etag') ?? '';
    const tag = NO_TAG.test(etag) ? [] : [etag];
    if (tag.length > 0 && !/^w\//i.test(etag)) {
        return { version: etag, isExact: true };
    }
    const date = size ? dateOf(headers) : undefined;
    const parts = date ? [...tag, date, `${size} bytes`] : tag;
    return { version: parts.join(', ') || undefined, isExact: date !== undefined };
}

/**
 * Reads an answer's headers: `from` is the first byte if the answer is a range of the file, `size` is 0 if it is unknown.
 * The length and the ranges of compressed content are not those of the file.
 * @param {Response} response
 */
export function describe({ status, headers }) {
    const isPlain = (headers.get('content-encoding') ?? 'identity') === 'identity';
    const isRange = status === 206;
    const [, from, total] = (isPlain && isRange && RANGE.exec(headers.get('content-range') ?? '')) || [];
    const size = Number((isRange ? total : isPlain && headers.get('content-length')) || 0);
    return { size, ...versionOf(headers, size), from: from ? Number(from) : undefined };
}

/**
 * Whether an answer or a copy is of the file `known`. Its size may be unknown.
 * @param {Version} known
 * @param {Version} now
 */
export const isSameFile = (known, { size, version }) =>
    version !== undefined && version === known.version && (size === 0 || size === known.size);

/**
 * Returns a signal that is also aborted after a long silence: networks may be lost without notice. Call `heard` when
 * bytes arrive, `rest` while no bytes are expected, and `end` when the transfer is over.
 * @param {AbortSignal | undefined} signal
 */
export function untilSilent(signal) {
    const { silenceMs } = host.download;
    const { controller, unlink } = linked(signal);
    const giveUp = () => controller.abort(new Error(`nothing arrived for ${silenceMs / 1000} s`));
    /** @type {ReturnType<typeof setTimeout> | undefined} */
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
