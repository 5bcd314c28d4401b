// A model from a URL: the parts that are cached from the disk, the others from the server.

import { CachedModel } from './cached_model.js';
import { host } from './host.js';
import { inOrder } from './in_order.js';
import { kindOf } from './http.js';
import { connect, readBody } from './remote_file.js';
import { readRange } from './remote_range.js';
import { regroup } from './stream.js';

/** Opens a model. `arrived` is called with the number of bytes whenever some arrive. */
export async function openRemote(url, { cache, signal }, arrived) {
    const copy = cache && /^https?:/.test(url) ? await CachedModel.open(url, signal) : undefined;
    try {
        const file = await connectOrCopy(url, copy, signal);
        const store = copy && (await copy.begin(file)) ? copy : undefined;
        return new RemoteModel(file, copy, store, signal, arrived);
    } catch (error) {
        await copy?.close();
        throw error;
    }
}

/** Asks the server for the file, or goes without it where it cannot be reached and there is a copy. */
async function connectOrCopy(url, copy, signal) {
    try {
        return await connect(url, signal);
    } catch (error) {
        if (kindOf(error) === 'unreachable' && copy?.isComplete) {
            return copy.file;
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

    /** `copy` is what is open, and `store` the same unless this file is not to be cached. */
    constructor(file, copy, store, signal, arrived) {
        this.#file = file;
        this.#copy = copy;
        this.#store = store;
        this.#partBytes = store?.file.partBytes ?? host.download.partBytes;
        this.#signal = signal;
        this.#arrived = arrived;
        this.source = this.cached ? 'cache' : 'network';
        // A copy has the size, too, which not every server sends.
        this.size = this.cached ? store.file.size : file.size;
    }

    /** Whether there is a complete copy. */
    get cached() {
        return this.#store?.isComplete ?? false;
    }

    pieces() {
        return this.#file.body && !this.cached ? this.#stream() : this.#parts();
    }

    #parts() {
        const part = async (index, signal) => {
            const start = index * this.#partBytes;
            const length = Math.min(this.#partBytes, this.size - start);
            const stored = await this.#store?.read(index, length);
            if (stored) {
                this.#arrived(length);
                return stored;
            }
            const bytes = await readRange(this.#file, start, length, signal, this.#arrived);
            await this.#store?.save(index, bytes);
            return bytes;
        };
        return inOrder(Math.ceil(this.size / this.#partBytes), part, this.#signal);
    }

    async *#stream() {
        const pieces = readBody(this.#file, this.#signal, this.#arrived);
        let [index, loaded] = [0, 0];
        for await (const part of regroup(pieces, this.#partBytes)) {
            await this.#store?.save(index++, part);
            loaded += part.length;
            yield part;
        }
        await this.#store?.finish(loaded);
    }

    /** Ends the use of the connection and of the copy. */
    async close() {
        await this.#file.body?.cancel().catch(() => {}); // One that was read is closed already.
        await this.#copy?.close();
    }
}
