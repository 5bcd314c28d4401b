// Pieces of bytes from streams, cut to the lengths that are needed.

/** The largest number of bytes that are passed to the module at once, so that few bytes wait for it. */
export const PIECE = 1 << 20;

/** The bytes that are read at a time. */
const READ = 1 << 18;

/**
 * Frees the memory of a buffer where the browser can: the collector may leave it until long after. Not for buffers that a
 * message or a reader had: Chromium keeps the memory of these, and the collector does not know of it any more.
 * @param {any} buffer
 */
export const free = (buffer) => buffer?.transfer?.(0);

/**
 * Returns a function that reads the next piece of a body. Where the browser can, pieces share a buffer, until the next
 * one is read: the collector may leave buffers of their own, as many bytes as the file has, until long after the download.
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} body
 * @returns {() => Promise<{ done: boolean, value?: Uint8Array<ArrayBuffer> }>}
 */
export function reading(body) {
    /** @type {ReadableStreamBYOBReader} */
    let reader;
    try {
        reader = body.getReader({ mode: 'byob' });
    } catch {
        const plain = body.getReader();
        return () => plain.read();
    }
    let buffer = new ArrayBuffer(READ);
    return async () => {
        const { done, value } = await reader.read(new Uint8Array(buffer));
        buffer = /** @type {ArrayBuffer} */ (value?.buffer);
        return { done, value };
    };
}

/**
 * A stream's pieces; not every browser iterates over streams.
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} readable
 */
export async function* chunks(readable) {
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

/**
 * Divides pieces, so that none has more than `most` bytes.
 * @param {AsyncIterable<Uint8Array<ArrayBuffer>> | Iterable<Uint8Array<ArrayBuffer>>} pieces
 * @param {number} most
 */
export async function* split(pieces, most) {
    for await (const piece of pieces) {
        for (let at = 0; at < piece.length; at += most) {
            yield piece.subarray(at, at + most);
        }
    }
}

/**
 * Joins pieces to parts of `length` bytes; the last one may be shorter.
 * @param {AsyncIterable<Uint8Array<ArrayBuffer>> | Iterable<Uint8Array<ArrayBuffer>>} pieces
 * @param {number} length
 */
export async function* regroup(pieces, length) {
    let part = new Uint8Array(length);
    let filled = 0;
    for await (const piece of split(pieces, length)) {
        const fits = piece.subarray(0, length - filled);
        part.set(fits, filled);
        filled += fits.length;
        if (filled === length) {
            yield part;
            part = new Uint8Array(length); // The consumer may keep the other.
            filled = piece.length - fits.length;
            part.set(piece.subarray(fits.length));
        }
    }
    if (filled > 0) {
        yield part.subarray(0, filled);
    }
}
