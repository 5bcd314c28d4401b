// Sources of a model's bytes: pieces that are read one after the other.

import { aborted, invalid, unaborted, view } from './check.js';
import { host } from './host.js';
import { openRemote } from './remote_model.js';
import { PIECE, chunks, split } from './stream.js';

/**
 * A file: `cached` is whether it is cached once its pieces were read.
 * @typedef {{
 *     size: number, source: string, cached: boolean,
 *     pieces: () => AsyncGenerator<Uint8Array<ArrayBuffer>>, close: () => Promise<void>,
 * }} SourceFile
 * @typedef {(bytes: number) => void} Arrived
 * @typedef {(progress: { loaded: number, total: number | undefined }) => void} OnProgress
 */

/** The name of the first part of a split model, as llama.cpp names the parts. */
const FIRST_PART = /^(.*-)00001(-of-(?!00000)(\d{5})\.gguf(?:[?#].*)?)$/s;

/**
 * Returns the sources of a model's parts: those of a list, those implied by the first one's name, or the only one.
 * @param {any} source
 * @returns {any[]}
 */
export function partsOf(source) {
    if (Array.isArray(source)) {
        if (source.length === 0) {
            throw invalid('source', source, 'a model, or the parts of one');
        }
        return source;
    }
    const isName = ['String', 'URL'].includes(Object.prototype.toString.call(source).slice(8, -1));
    const [, before, after, count] = (isName && FIRST_PART.exec(source)) || [];
    const names = Array.from({ length: Number(count ?? 0) }, (_, i) => before + String(i + 1).padStart(5, '0') + after);
    return count ? names : [source];
}

/**
 * Opens a source: a URL, a Blob or bytes. Returns its size in bytes, 0 if it is not known, where it comes from, and
 * whether it is cached once its pieces were read. `onProgress` is called as bytes arrive. Downloads that are not cached
 * have parts of `partBytes`.
 * @param {any} source
 * @param {{ cache?: boolean, signal?: AbortSignal, onProgress?: OnProgress, partBytes?: number }} options
 * @returns {Promise<SourceFile>}
 */
export async function open(source, { cache, signal, onProgress, partBytes }) {
    /** @type {number | undefined} */
    let size;
    let loaded = 0;
    const arrived = (/** @type {number} */ bytes) => onProgress?.({ loaded: (loaded += bytes), total: size || undefined });
    const file = (await openLocal(source, arrived)) ?? (await openRemote(resolve(source), { cache, signal, partBytes }, arrived));
    size = file.size;
    return file;
}

/**
 * @param {any} source
 * @param {Arrived} arrived
 * @returns {Promise<SourceFile | undefined>}
 */
async function openLocal(source, arrived) {
    const kind = Object.prototype.toString.call(source).slice(8, -1);
    if (kind === 'Blob' || kind === 'File') {
        return local(source.size, chunks(source.stream()), arrived);
    }
    if (ArrayBuffer.isView(source) || kind === 'ArrayBuffer' || kind === 'SharedArrayBuffer') {
        const bytes = view(source, 'source');
        return local(bytes.length, [bytes], arrived);
    }
    if (kind === 'String' || kind === 'URL') {
        const file = await host.openFile?.(source);
        return file && local(file.size, file.pieces, arrived);
    }
    throw invalid('source', source, 'a URL, a File, a Blob, an ArrayBuffer or a Uint8Array');
}

/**
 * @param {number} size
 * @param {any} bytes
 * @param {Arrived} arrived
 * @returns {SourceFile}
 */
function local(size, bytes, arrived) {
    const pieces = async function* () {
        for await (const piece of split(bytes, PIECE)) {
            arrived(piece.length);
            yield piece;
        }
    };
    return { size, source: 'local', cached: false, pieces, close: async () => void (await bytes.return?.(undefined)) };
}

/**
 * Returns the URL that a page means by a source.
 * @param {any} source
 */
export function resolve(source) {
    try {
        const url = new URL(source, globalThis.document?.baseURI ?? globalThis.location?.href);
        url.hash = '';
        return url.href;
    } catch {
        throw invalid('source', source, 'a URL');
    }
}

/**
 * Reads a source of some megabytes whole.
 * @param {any} source
 * @param {AbortSignal | undefined} signal
 */
export async function wholeFile(source, signal) {
    unaborted(signal);
    const file = await open(source, { cache: false, signal });
    try {
        const pieces = [];
        for await (const piece of file.pieces()) {
            unaborted(signal);
            pieces.push(piece.slice());
        }
        const bytes = new Uint8Array(await new Blob(pieces).arrayBuffer());
        unaborted(signal);
        return bytes;
    } catch (error) {
        throw signal?.aborted ? aborted(signal) : error;
    } finally {
        await file.close();
    }
}
