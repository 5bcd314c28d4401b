import { RelampagoError, countRemote, named, namedLater, traced } from '../core.js';

const release = ({ link, numbers, bytes }) => {
    countRemote(-bytes);
    link.release(numbers);
};

// What nobody disposed of is released when it is collected, as it is without a worker.
const registry = new FinalizationRegistry(release);

/** What an object on the page stands for in a worker, until it is disposed of. */
class Handle {
    #name;
    #number;
    /** What the worker releases; undefined after that. */
    #held;

    constructor(owner, name, link, numbers, bytes) {
        this.#name = name;
        [this.#number] = numbers;
        this.#held = { link, numbers, bytes };
        link.retain();
        countRemote(bytes);
        registry.register(owner, this.#held, this);
    }

    get link() {
        if (!this.#held) {
            throw new RelampagoError('DISPOSED', `this ${this.#name} was disposed of`);
        }
        return this.#held.link;
    }

    get number() {
        return this.#number;
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
        this.#held && release(this.#held);
        this.#held = undefined;
    }
}

/**
 * A class of the same interface, whose objects stand for what a worker holds under the first of
 * `numbers`; under the others it holds what goes with it. `bytes` are those of its values.
 */
export const remote = (Class, name) => class extends Class {
    constructor(link, numbers, bytes = 0) {
        super();
        this.handle = new Handle(this, name, link, numbers, bytes);
    }

    dispose() {
        this.handle.dispose();
    }

    free() {
        this.dispose();
    }
};

/**
 * Has methods that a class replaces refuse calls without their object, and name themselves in errors, as those of the class
 * that it stands for do. `later` return promises; it has the places of options that have only `signal`. Errors show the name
 * of that class.
 */
export const owned = (Class, what, now, later) => {
    const { prototype } = Class;
    Object.defineProperty(Class, 'name', { value: Object.getPrototypeOf(Object.getPrototypeOf(Class)).name });
    now.forEach((name) => (prototype[name] = named(Class, what, name, prototype[name])));
    for (const [name, place] of Object.entries(later)) {
        prototype[name] = traced(namedLater(Class, what, name, prototype[name], place));
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
