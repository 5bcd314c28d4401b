// A model from a URL: the parts that are cached from the disk, the others from the server.

import { CachedModel } from './cached_model.js';
import { host } from './host.js';
import { kindOf } from './http.js';
import { inOrder } from './in_order.js';
import { connect, readBody } from './remote_file.js';
import { readRange } from './remote_range.js';
import { free, regroup } from './stream.js';

/**
 * @import { RemoteFile, Streamed } from './remote_file.js'
 * @import { Arrived } from './source.js'
 */

/**
 * Opens a model. `arrived` is called with the number of bytes whenever some arrive.
 * @param {string} url
 * @param {{ cache?: boolean, signal?: AbortSignal, partBytes?: number }} options
 * @param {Arrived} arrived
 */
export async function openRemote(url, { cache, signal, partBytes }, arrived) {
    const copy = cache && /^https?:/.test(url) ? await CachedModel.open(url, signal) : undefined;
    try {
        const file = await connectOrCopy(url, copy, signal);
        const store = copy && (await copy.begin(file)) ? copy : undefined;
        return new RemoteModel(file, { copy, store, signal, arrived, partBytes });
    } catch (error) {
        await copy?.close();
        throw error;
    }
}

/**
 * Asks the server for the file, or goes without it where it cannot be reached and there is a copy.
 * @param {string} url
 * @param {CachedModel | undefined} copy
 * @param {AbortSignal | undefined} signal
 */
async function connectOrCopy(url, copy, signal) {
    try {
        return await connect(url, signal);
    } catch (error) {
        if (kindOf(error) === 'unreachable' && copy?.isComplete) {
            return /** @type {RemoteFile} */ (copy.file);
        }
        throw error;
    }
}

class RemoteModel {
    #file;
    #copy;
    #store;
    #partBytes;
    #signal;
    #arrived;
    /**
     * The buffer of a part that the module has copied. The collector may come too late for the next part.
     * @type {ArrayBuffer | undefined}
     */
    #spare;

    /**
     * `copy` is the open copy; `store` is the same, or undefined if this file is not cached.
     * @param {RemoteFile} file
     * @param {{ copy?: CachedModel, store?: CachedModel, signal?: AbortSignal, arrived: Arrived, partBytes?: number }} options
     */
    constructor(file, { copy, store, signal, arrived, partBytes = host.download.partBytes }) {
        this.#file = file;
        this.#copy = copy;
        this.#store = store;
        this.#partBytes = store?.file?.partBytes ?? partBytes;
        this.#signal = signal;
        this.#arrived = arrived;
        this.source = this.cached ? 'cache' : 'network';
        // A copy has the size, too, which not every server sends.
        this.size = store && this.cached ? Number(store.file?.size) : file.size;
    }

    /** Whether there is a complete copy. */
    get cached() {
        return this.#store?.isComplete ?? false;
    }

    /** The pieces of the file. The next piece may reuse the memory of the one before it. */
    pieces() {
        return this.#file.body && !this.cached ? this.#stream() : this.#parts();
    }

    async *#parts() {
        const parts = inOrder(Math.ceil(this.size / this.#partBytes), (index, signal) => this.#part(index, signal), this.#signal);
        for await (const bytes of parts) {
            yield bytes;
            free(this.#spare);
            this.#spare = bytes.buffer;
        }
    }

    /**
     * @param {number} index
     * @param {AbortSignal} signal
     */
    async #part(index, signal) {
        const start = index * this.#partBytes;
        const length = Math.min(this.#partBytes, this.size - start);
        const stored = await this.#store?.read(index, length);
        if (stored) {
            this.#arrived(length);
            return stored;
        }
        const bytes = new Uint8Array(this.#takeBuffer(), 0, length);
        await readRange(this.#file, start, bytes, signal, this.#arrived);
        await this.#store?.save(index, bytes);
        return bytes;
    }

    #takeBuffer() {
        const buffer = this.#spare ?? new ArrayBuffer(this.#partBytes);
        this.#spare = undefined;
        return buffer;
    }

    async *#stream() {
        const pieces = readBody(/** @type {Streamed} */ (this.#file), this.#signal, this.#arrived);
        if (!this.#store) {
            yield* pieces;
            return;
        }
        let [index, loaded] = [0, 0];
        const store = this.#store;
        for await (const part of regroup(pieces, this.#partBytes)) {
            await store.save(index++, part);
            loaded += part.length;
            yield part;
            free(part.buffer);
        }
        await store.finish(loaded);
    }

    /** Ends the use of the connection, of the copy, and of the pieces. */
    async close() {
        free(this.#spare);
        this.#file.connection?.end();
        await this.#copy?.close();
    }
}
