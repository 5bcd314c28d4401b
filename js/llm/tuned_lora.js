import * as check from './check.js';
import { Lora } from './lora.js';

/** @import { Current } from './engines.js' */

/** An adapter that a model learned, with its files. */
export class TunedLora extends Lora {
    #learned;

    /**
     * Use `model.tune`. `learned` has the files, the losses and the state.
     * @param {Current} current
     * @param {any} learned
     * @param {Set<Lora>} all
     */
    constructor(current, learned, all) {
        check.made(learned, 'adapters that were learned', 'model.tune');
        super(current, learned.gguf, undefined, all);
        this.#learned = learned;
    }

    /** The loss of each step. */
    get losses() {
        return this.#learned.losses.slice();
    }

    /** The loss of the held-back examples after each epoch. */
    get heldBackLosses() {
        return this.#learned.heldBackLosses.slice();
    }

    toGguf() {
        return this.#learned.gguf.slice();
    }

    toSafetensors() {
        return this.#learned.safetensors.slice();
    }

    adapterConfig() {
        return this.#learned.config;
    }

    state() {
        return this.#learned.state.slice();
    }
}
