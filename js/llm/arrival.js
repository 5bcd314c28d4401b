// A file whose matrices go to a GPU as they arrive, so that the module need not hold all of it.

import { ModelBytes } from '#llm';

/** @import { Device, IncomingModel } from '#llm' */

export class Arrival {
    /** The objects that have memory in the module or on the GPU: the device, the first bytes, and then the model. */
    #device;
    /** @type {ModelBytes | undefined} */
    #bytes = new ModelBytes(0);
    /** @type {IncomingModel | undefined} */
    #model;
    #size;
    #options;
    #written = Promise.resolve();
    #isFreed = false;

    /**
     * @param {Device} device
     * @param {number} size
     * @param {any} options
     */
    constructor(device, size, options) {
        this.#device = device;
        this.#size = size;
        this.#options = options;
    }

    /**
     * Appends a piece of the file, whose bytes must not change before the result settles. Rejects with the errors of
     * `IncomingModel`; then all further pieces are refused with the same error.
     * @param {Uint8Array} piece
     * @returns {Promise<void>}
     */
    write(piece) {
        this.#written = this.#written.then(() => this.#append(piece));
        return this.#written;
    }

    /**
     * Appends a piece; begins the model when the metadata are complete.
     * @param {Uint8Array} piece
     */
    async #append(piece) {
        if (this.#isFreed) {
            return;
        }
        if (this.#model) {
            return this.#model.write(piece);
        }
        const bytes = /** @type {ModelBytes} */ (this.#bytes);
        bytes.write(piece);
        if (bytes.hasHead(this.#size)) {
            this.#bytes = undefined;
            this.#model = await this.#device.begin(bytes, this.#size, this.#options);
        }
    }

    /** Waits until the file is there. Returns its bytes if the end of the metadata was not found; rejects as `write`. */
    async finish() {
        await this.#written;
        const bytes = this.#bytes;
        this.#bytes = undefined;
        return this.#model ? undefined : bytes;
    }

    hasChatTemplate() {
        return /** @type {IncomingModel} */ (this.#model).hasChatTemplate();
    }

    /** Returns the model. Rejects with `INVALID_MODEL` if the file has ended too early, and if the GPU has no memory. */
    async open() {
        const model = /** @type {IncomingModel} */ (this.#model);
        this.#model = undefined;
        return model.finish();
    }

    /** Releases everything once nothing uses it; resolves then. */
    free() {
        this.#isFreed = true;
        const release = () => [this.#device, this.#bytes, this.#model].forEach((one) => one?.free());
        return this.#written.then(release, release);
    }
}
