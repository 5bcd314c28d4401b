import * as check from './check.js';
import { DISPOSE } from '../common/dispose.js';
import { RelampagoError } from '../common/error.js';
import { requireNames } from '../common/options.js';

/**
 * @import { AnyEngine, Current } from './engines.js'
 * @typedef {{ lora: Lora, scale: number }} Chosen an adapter and its factor
 */

/** An adapter of a model. */
export class Lora {
    #current;
    #file;
    #alpha;
    #all;
    /**
     * The engine's number; undefined if the engine has no such adapter.
     * @type {number | undefined}
     */
    #number;
    #layers = 0;
    #disposed = false;
    /** The number of answers and sessions that use it, for which it stays after `dispose`. */
    #uses = 0;

    /**
     * Use `model.loadLora`. `current` has the model's engine, `all` the adapters of the model.
     * @param {Current} current
     * @param {Uint8Array} file
     * @param {number | undefined} alpha
     * @param {Set<Lora>} all
     */
    constructor(current, file, alpha, all) {
        check.made(current?.engine, 'adapters', 'model.loadLora');
        this.#current = current;
        this.#file = file;
        this.#alpha = alpha;
        this.#all = all;
    }

    /**
     * Gives the adapter to an engine: the model's, or the one that will be.
     * @param {AnyEngine} engine
     */
    async renew(engine) {
        const [number, layers] = await engine.addLora(this.#file, this.#alpha).catch((error) => {
            this.#number = undefined;
            throw error;
        });
        if (this.#isUnused) {
            engine.removeLora(number);
            return;
        }
        this.#number = number;
        this.#layers = layers;
        this.#all.add(this);
    }

    /** The number of linear layers that it changes. */
    get layers() {
        return this.#layers;
    }

    get #isUnused() {
        return this.#disposed && this.#uses === 0;
    }

    #freeUnused() {
        if (this.#isUnused && this.#all.delete(this) && this.#number !== undefined) {
            this.#current.engine.removeLora(this.#number);
        }
    }

    dispose() {
        this.#disposed = true;
        this.#freeUnused();
    }

    /** For `using`. */
    [DISPOSE]() {
        this.dispose();
    }

    /**
     * Checks the adapters that a user chooses; returns each with its factor.
     * @param {any} choice
     * @param {string} what
     * @param {Current} current
     * @returns {Chosen[]}
     */
    static chosen(choice, what, current) {
        return (Array.isArray(choice) ? choice : [choice]).map((each, i) => {
            const { lora, scale = 1 } = each instanceof Lora ? { lora: each } : Object(each);
            if (!(lora instanceof Lora)) {
                throw check.invalid(`${what}[${i}]`, each, 'a Lora, or an object { lora, scale }');
            }
            each === lora || requireNames(each, ['lora', 'scale'], `\`${what}[${i}]\`: `);
            if (lora.#current !== current) {
                throw new RelampagoError('FOREIGN', `\`${what}[${i}]\` belongs to another model: load it for this one`);
            }
            if (lora.#disposed) {
                throw check.disposed('Lora');
            }
            return { lora, scale: check.number(scale, `${what}[${i}].scale`) };
        });
    }

    /**
     * Keeps adapters that were chosen; returns a function that ends that.
     * @param {Chosen[]} chosen
     */
    static keep(chosen) {
        const loras = chosen.map(({ lora }) => lora);
        loras.forEach((lora) => lora.#uses++);
        return () => loras.splice(0).forEach((lora) => {
            lora.#uses--;
            lora.#freeUnused();
        });
    }

    /**
     * Pairs of the engine's number and a factor, for adapters that were chosen.
     * @param {Chosen[]} chosen
     * @returns {number[]}
     */
    static pairs(chosen) {
        return chosen.flatMap(({ lora, scale }) => {
            if (lora.#number === undefined) {
                throw check.disposed('Lora');
            }
            return [lora.#number, scale];
        });
    }
}
