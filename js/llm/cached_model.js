// The copy of a model from a URL.

import { host } from './host.js';
import { isSameFile } from './http.js';
import { hasRoom, lockModel, modelsFolder, nameOf, readFolder, sizeOf, writeDescription, writePart } from './opfs.js';

/**
 * @import { Version } from './http.js'
 * @import { Description, Parts } from './opfs.js'
 */

/** The copy of one model: absent, partial or complete. Nobody else has it open. */
export class CachedModel {
    #models;
    #name;
    #unlock;
    /** @type {FileSystemDirectoryHandle | undefined} */
    #folder;
    /** @type {Description | undefined} */
    #description;
    /** @type {Parts} */
    #parts = new Map();
    #failed = false;

    /**
     * Waits until no other loader has the model open. Returns undefined if models cannot be cached.
     * @param {string} url
     * @param {AbortSignal} [signal]
     */
    static async open(url, signal) {
        try {
            const models = await modelsFolder({ create: true });
            return models && (await CachedModel.#openIn(models, await nameOf(url), signal));
        } catch (error) {
            if (signal?.aborted) {
                throw error;
            }
            return undefined;
        }
    }

    /**
     * @param {FileSystemDirectoryHandle} models
     * @param {string} name
     * @param {AbortSignal | undefined} signal
     */
    static async #openIn(models, name, signal) {
        const model = new CachedModel(models, name, await lockModel(name, signal));
        await model.#read().catch(() => {}); // There is none, or what there is will be replaced.
        return model;
    }

    /**
     * @param {FileSystemDirectoryHandle} models
     * @param {string} name
     * @param {() => void} unlock
     */
    constructor(models, name, unlock) {
        this.#models = models;
        this.#name = name;
        this.#unlock = unlock;
    }

    async #read() {
        const folder = await this.#models.getDirectoryHandle(this.#name);
        const { description, parts } = await readFolder(folder);
        this.#folder = folder;
        this.#description = description;
        this.#parts = parts;
    }

    get isComplete() {
        const size = this.#description?.size ?? 0;
        return !this.#failed && size > 0 && sizeOf(this.#parts) === size;
    }

    /** The file that this is a copy of, as `connect` describes files, and the bytes of each part but the last one. */
    get file() {
        return this.#description;
    }

    /**
     * Prepares for a file: only parts of the same version stay. Returns whether it can and may be cached.
     * @param {Version & { url: string, partBytes?: number }} file
     */
    async begin(file) {
        if (file.version === undefined) {
            return false; // The next load could not find out whether the copy is current.
        }
        try {
            if (!this.#description || !isSameFile(this.#description, file)) {
                await this.#remove();
            }
            if (this.isComplete) {
                return true;
            }
            const hasEnough = await hasRoom(file.size - sizeOf(this.#parts));
            if (hasEnough && !this.#description) {
                await this.#describe(file);
            }
            return hasEnough;
        } catch {
            this.#failed = true;
            return false;
        }
    }

    /** @param {Version & { url: string, partBytes?: number }} file */
    async #describe({ url, size, version, partBytes = host.download.partBytes }) {
        const description = { url, size, version, partBytes };
        this.#folder = await this.#models.getDirectoryHandle(this.#name, { create: true });
        await writeDescription(this.#folder, description);
        this.#description = description;
    }

    /**
     * Returns the bytes of a part, if it is there.
     * @param {number} index
     * @param {number} length
     */
    async read(index, length) {
        const part = this.#parts.get(index);
        return part?.size === length ? part.arrayBuffer().then((bytes) => new Uint8Array(bytes), () => {}) : undefined;
    }

    /**
     * Stores a part. If that fails, as beyond the quota, the model loads without a copy.
     * @param {number} index
     * @param {Uint8Array<ArrayBuffer>} bytes
     */
    async save(index, bytes) {
        const folder = /** @type {FileSystemDirectoryHandle} */ (this.#folder);
        await this.#attempt(async () => this.#parts.set(index, await writePart(folder, index, bytes)));
    }

    /**
     * Stores the size of a file where it was not known before.
     * @param {number} size
     */
    async finish(size) {
        const description = /** @type {Description} */ (this.#description);
        await this.#attempt(async () => description.size || (await this.#describe({ ...description, size })));
    }

    /** @param {() => Promise<unknown>} work */
    async #attempt(work) {
        try {
            if (!this.#failed) {
                await work();
            }
        } catch {
            this.#failed = true;
        }
    }

    async #remove() {
        this.#description = undefined;
        this.#parts.clear();
        await this.#models.removeEntry(this.#name, { recursive: true }).catch(() => {}); // There may be none.
    }

    /** Lets other loaders open the model. No operation on it may be running. */
    async close() {
        if (this.#failed) {
            await this.#remove();
        }
        this.#unlock();
    }
}
