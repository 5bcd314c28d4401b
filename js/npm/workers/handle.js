import { RelampagoError, countRemote } from '../core.js';

/**
 * @import { Link } from './link.js'
 * @typedef {{ link: Link, numbers: number[], bytes: number }} Held
 */

/** @param {Held} held */
const release = ({ link, numbers, bytes }) => {
    countRemote(-bytes);
    link.release(numbers);
};

// An object that was not disposed of is released when it is collected, as without a worker.
/** @type {FinalizationRegistry<Held>} */
const registry = new FinalizationRegistry(release);

/** Stands for an object of the module in a worker, with the same methods, until it is disposed of. */
export class Remote {
    #number;
    /**
     * The numbers and bytes that the worker releases; undefined after that.
     * @type {Held | undefined}
     */
    #held;

    /**
     * The worker holds the object under the first of `numbers`, and its parts under the others. Its values have `bytes` bytes.
     * @param {Link} link
     * @param {number[]} numbers
     */
    constructor(link, numbers, bytes = 0) {
        [this.#number] = numbers;
        this.#held = { link, numbers, bytes };
        link.retain();
        countRemote(bytes);
        registry.register(this, this.#held, this);
    }

    get link() {
        if (!this.#held) {
            throw new RelampagoError('DISPOSED', 'this object of a worker was disposed of');
        }
        return this.#held.link;
    }

    get number() {
        return this.#number;
    }

    /**
     * Calls a method in the worker: see `Link.call`.
     * @param {string} method
     * @param {import('./link.js').Details} [details]
     */
    call(method, details) {
        return this.link.call(this.#number, method, details);
    }

    /**
     * A call of whose failure everything that builds on it will tell.
     * @param {string} method
     * @param {import('./link.js').Details} [details]
     */
    post(method, details) {
        this.call(method, details).catch(() => {});
    }

    dispose() {
        registry.unregister(this);
        this.#held && release(this.#held);
        this.#held = undefined;
    }
}

/**
 * Returns an object once the worker has what it stands for.
 * @template {Remote} T
 * @param {T} object
 * @param {Promise<unknown>} work
 */
export async function ready(object, work) {
    try {
        await work;
        return object;
    } catch (error) {
        object.dispose();
        throw error;
    }
}
