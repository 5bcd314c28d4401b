// Entries of the package that add functions to tensors, `relampago/train` and `relampago/numeric`. Their modules are loaded
// apart, and only for those who import them.

import { loader } from '../../common/loader.js';
import { failure } from './shape.js';

/** @typedef {Record<string, (...values: any[]) => any>} Functions */

/**
 * Functions that load the modules of the entries that were imported.
 * @type {(() => Promise<void>)[]}
 */
const loads = [];

/**
 * The functions of the entries whose modules were loaded.
 * @type {Record<string, Functions>}
 */
const entries = {};

/**
 * Adds an entry with its functions: `GpuDevice.create` loads its module, so that calls need not wait. Returns the entry's
 * `init`, and the object in which the entry for Node replaces it by one that reads files.
 * @param {string} name
 * @param {(options: { module_or_path: any }) => Promise<unknown>} load
 * @param {() => URL} moduleUrl
 * @param {Functions} functions
 */
export const entryOf = (name, load, moduleUrl, functions) => {
    const loaded = async (/** @type {{ module_or_path: any }} */ options) => {
        await load(options);
        entries[name] = functions;
    };
    const init = loader(loaded, moduleUrl);
    const host = { init };
    loads.push(() => host.init());
    return { init, host };
};

/** Loads the modules of the entries that were imported. */
export const extended = () => Promise.all(loads.map((load) => load()));

/**
 * Returns the functions of an entry.
 * @param {string} op
 * @param {string} name
 */
export const extension = (op, name) => {
    if (!entries[name]) {
        throw failure(op, `it needs \`import 'relampago/${name}'\`, before GpuDevice.create()`, 'NOT_LOADED');
    }
    return entries[name];
};
