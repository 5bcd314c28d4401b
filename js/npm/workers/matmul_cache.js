import { ModuleBatch, invalid, ops, unlessAborted } from '../core.js';
import { copied } from './arguments.js';
import { Remote } from './handle.js';

/** @import { CacheExecutor } from '../executors.js' */

/** The index of `matmul` in the op table. */
export const MATMUL = ops.findIndex(([name]) => name === 'matmul');

/**
 * Weights that a worker holds.
 * @implements {CacheExecutor}
 */
export class RemoteMatmulCache extends Remote {
    /**
     * The rows and columns of the weights, by their names, with which batches find mistakes on the page.
     * @type {Map<any, [k: number, n: number]>}
     */
    #shapes = new Map();

    /**
     * @param {any} name
     * @param {any} weights
     * @param {any} options
     * @param {any} abort
     */
    insert(name, weights, options, abort) {
        return this.#insert('insert', name, weights, options, abort);
    }

    /**
     * @param {any} name
     * @param {any} blocks
     * @param {any} options
     * @param {any} abort
     */
    insertBlocks(name, blocks, options, abort) {
        return this.#insert('insertBlocks', name, blocks, options, abort);
    }

    /**
     * @param {any} name
     * @param {any} input
     * @param {any} m
     * @param {any} abort
     */
    matmulCached(name, input, m, abort) {
        return unlessAborted(abort, () => this.call('matmulCached', { values: [name, copied(input), m] }));
    }

    /** @param {any} name */
    async remove(name) {
        const isRemoved = await this.call('remove', { values: [name] });
        this.#shapes.delete(name);
        return isRemoved;
    }

    async weights() {
        return this.call('weights');
    }

    /**
     * Returns the length of a matmul of `m` rows, which are `length` elements, with weights of this cache.
     * @param {any} name
     * @param {number} length
     * @param {any} m
     */
    resultLength(name, length, m) {
        const [k, n] = this.#shapes.get(name) ?? [];
        if (k === undefined || n === undefined) {
            throw invalid('name', name, 'the name of weights in the cache');
        }
        return ModuleBatch.lengthOf(MATMUL, [length, k * n, m, k, n]);
    }

    /**
     * @param {'insert' | 'insertBlocks'} method
     * @param {any} name
     * @param {any} weights
     * @param {any} options
     * @param {any} abort
     */
    async #insert(method, name, weights, options, abort) {
        const { k, n } = options;
        const values = [name, copied(weights), copied(options)];
        await unlessAborted(abort, () => this.call(method, { values }));
        this.#shapes.set(name, [k, n]);
    }
}
