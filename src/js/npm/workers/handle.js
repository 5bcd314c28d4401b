import { RelampagoError } from '../core.js';

// What nobody disposed of is released when it is collected, as it is without a worker.
const registry = new FinalizationRegistry(([link, numbers]) => link.release(numbers));

/** What an object on the page stands for in a worker, until it is disposed of. */
class Handle {
    #name;
    #link;
    #numbers;

    constructor(owner, name, link, numbers) {
        this.#name = name;
        this.#link = link;
        this.#numbers = numbers;
        link.retain();
        registry.register(owner, [link, numbers], this);
    }

    get link() {
        if (!this.#link) {
            throw new RelampagoError('DISPOSED', `this ${this.#name} was disposed of`);
        }
        return this.#link;
    }

    get number() {
        return this.#numbers[0];
    }

    /** `Link.call` of what this stands for. */
    call(method, details) {
        return this.link.call(this.number, method, details);
    }

    /** A call of whose failure everything that builds on it will tell. */
    post(method, details) {
        this.call(method, details).catch(() => {});
    }

    dispose() {
        registry.unregister(this);
        this.#link?.release(this.#numbers);
        this.#link = undefined;
    }
}

/**
 * A class of the same interface, whose objects stand for what a worker holds under the first of
 * `numbers`; under the others it holds what goes with it.
 */
export const remote = (Class, name) => class extends Class {
    constructor(link, numbers) {
        super();
        this.handle = new Handle(this, name, link, numbers);
    }

    dispose() {
        this.handle.dispose();
    }

    free() {
        this.dispose();
    }
};

/** The object, once the worker has what it stands for. */
export async function ready(object, work) {
    try {
        await work;
        return object;
    } catch (error) {
        object.dispose();
        throw error;
    }
}
