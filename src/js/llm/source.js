// Where the bytes of a model come from: pieces that are read one after the other.

import { invalid } from './check.js';
import { RelampagoError } from './error.js';
import { host } from './host.js';

/** The most bytes of a piece, so that what is on its way to the module stays small. */
const PIECE = 4 << 20;

/**
 * Opens a source: a URL, a Blob or bytes. Returns its size in bytes, 0 if it is not known, and its pieces.
 * @returns {Promise<{ size: number, pieces: AsyncIterable<Uint8Array> }>}
 */
export async function open(source, signal) {
    const kind = Object.prototype.toString.call(source).slice(8, -1);
    if (kind === 'Blob' || kind === 'File') {
        return { size: source.size, pieces: split(stream(source.stream())) };
    }
    if (ArrayBuffer.isView(source)) {
        const bytes = new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
        return { size: bytes.length, pieces: split([bytes]) };
    }
    if (kind === 'ArrayBuffer' || kind === 'SharedArrayBuffer') {
        return { size: source.byteLength, pieces: split([new Uint8Array(source)]) };
    }
    if (kind === 'String' || kind === 'URL') {
        const opened = (await host.openFile?.(source)) ?? (await download(source, signal));
        return { size: opened.size, pieces: split(opened.pieces) };
    }
    throw invalid('source', source, 'a URL, a File, a Blob, an ArrayBuffer or a Uint8Array');
}

async function download(url, signal) {
    const failed = (reason, cause) => new RelampagoError('INVALID_MODEL', `the model could not be loaded from ${url}: ${reason}`, cause);
    let response;
    try {
        response = await fetch(url, { signal });
    } catch (error) {
        throw signal?.aborted ? error : failed(error.message, error);
    }
    if (!response.ok) {
        throw failed(`the server answers ${response.status}`);
    }
    // The length of compressed content is not that of the model.
    const length = response.headers.has('content-encoding') ? 0 : Number(response.headers.get('content-length'));
    const pieces = (async function* () {
        try {
            yield* stream(response.body);
        } catch (error) {
            throw signal?.aborted ? error : failed(error.message, error);
        }
    })();
    return { size: length, pieces };
}

/** A stream's pieces; not every browser iterates over streams. */
async function* stream(readable) {
    const reader = readable.getReader();
    try {
        for (;;) {
            const { done, value } = await reader.read();
            if (done) {
                return;
            }
            yield value;
        }
    } finally {
        await reader.cancel().catch(() => {});
    }
}

async function* split(pieces) {
    for await (const piece of pieces) {
        for (let at = 0; at < piece.length; at += PIECE) {
            yield piece.subarray(at, at + PIECE);
        }
    }
}
