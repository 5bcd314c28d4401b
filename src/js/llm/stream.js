// Pieces of bytes from streams, cut to the lengths that are needed.

/** The most bytes of a piece on its way to the module, so that what is under way stays small. */
export const PIECE = 4 << 20;

/** A stream's pieces; not every browser iterates over streams. */
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

/** Divides pieces, so that none has more than `most` bytes. */
export async function* split(pieces, most) {
    for await (const piece of pieces) {
        for (let at = 0; at < piece.length; at += most) {
            yield piece.subarray(at, at + most);
        }
    }
}

/** Joins pieces to parts of `length` bytes; the last one may be shorter. */
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
