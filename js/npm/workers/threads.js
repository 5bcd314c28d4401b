// Workers that run one module, whose memory they share: the first one leads, and the others take parts of its work.

import { obstacle, sharedMemory } from '../../common/shared_memory.js';
import { RelampagoError } from '../core.js';
import { Link } from './link.js';

/** @import { Host } from './creating.js' */

/**
 * The module whose memory workers share, for an instruction set. Bundlers look for these very expressions.
 * @param {string} set
 */
export const moduleUrl = (set) => (set === 'SIMD128'
    ? new URL('../relampago_shared_simd128.wasm', import.meta.url)
    : new URL('../relampago_shared_relaxed.wasm', import.meta.url));

/** @type {Promise<WebAssembly.Module> | undefined} */
let module;

/**
 * Has the host compile the module, once.
 * @param {Host} host
 * @param {string} set
 */
const compiled = async ({ compile }, set) => {
    try {
        module ??= compile(moduleUrl(set));
        return await module;
    } catch (/** @type {any} */ error) {
        module = undefined; // The next call may have more luck with the network.
        throw new RelampagoError('NOT_LOADED', `the module for threads could not be loaded: ${error.message}`, error);
    }
};

/**
 * Starts `count` workers. Their module has the instruction set `set`, that of the caller's module: modules of different sets
 * round differently. Returns the link to the workers and their number, or the reason why there are none.
 * @param {Host} host
 * @param {number} count
 * @param {string} set
 * @returns {Promise<{ alone?: string, link?: Link, count?: number }>}
 */
export const crew = async (host, count, set) => {
    const alone = obstacle();
    if (alone) {
        return { alone };
    }
    const memory = sharedMemory();
    const link = new Link(Array(count).fill(host.spawnSharing));
    try {
        await link.share(await compiled(host, set), memory);
        return { link, count };
    } catch (error) {
        link.end();
        throw error;
    }
};
