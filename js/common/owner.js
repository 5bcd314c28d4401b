// Objects of the package own objects of wasm-bindgen's classes, or ones that stand for these, and nothing else refers to them.

import { DISPOSE } from './dispose.js';
import { RelampagoError } from './error.js';

/**
 * An object of wasm-bindgen's classes, or one with the same methods.
 * @typedef {{ dispose?(): void, free?(): void }} Owned
 */

/** The key of constructors that callers of the package may not use. */
export const MADE = Symbol('made');

/**
 * Returns what an object owns; throws for one that was disposed of.
 * @type {<E extends Owned>(owner: Owner<E>) => E}
 */
let ownedBy;

/**
 * Returns what a value owns, if it is an object of the package and was not disposed of.
 * @type {(value: any) => any}
 */
let ownedIf;

export { ownedBy, ownedIf };

/** @template {Owned} E */
export class Owner {
    /** @type {E | undefined} */
    #owned;

    static {
        ownedBy = (owner) => {
            if (!owner.#owned) {
                throw new RelampagoError('DISPOSED', `this ${owner.constructor.name} was disposed of: make a new one`);
            }
            return owner.#owned;
        };
        ownedIf = (value) => (Object(value) === value && #owned in value ? value.#owned : undefined);
    }

    /**
     * @param {E} owned
     * @param {symbol} key
     */
    constructor(owned, key) {
        if (key !== MADE) {
            const advice = 'methods such as GpuDevice.create() make its objects';
            throw new RelampagoError('INVALID_ARGUMENT', `${new.target.name} has no constructor; ${advice}`);
        }
        this.#owned = owned;
    }

    /** Releases what the object owns, and its memory. Calls that are under way are finished. */
    dispose() {
        const owned = this.#owned;
        this.#owned = undefined;
        owned?.dispose?.();
        try {
            owned?.free?.();
        } catch {} // A call of it is under way, whose own function disposed of it.
    }

    free() {
        this.dispose();
    }

    /** For `using`. */
    [DISPOSE]() {
        this.dispose();
    }
}
