// Entries of the package that add functions to tensors, `relampago/train` and `relampago/numeric`. Their modules are loaded
// apart, and only for those who import them.

import { failure } from './shape.js';

/** Functions that load the modules of the entries that were imported. */
const loads = [];

/** The functions of the entries whose modules were loaded. */
const entries = {};

/** Has `GpuDevice.create` load an entry's module, so that calls need not wait. */
export const announce = (load) => loads.push(load);

/** Stores the functions of an entry, whose module was loaded. */
export const extend = (name, functions) => {
    entries[name] = functions;
};

/** Loads the modules of the entries that were imported. */
export const extended = () => Promise.all(loads.map((load) => load()));

/** Returns the functions of an entry. */
export const extension = (op, name) => {
    if (!entries[name]) {
        throw failure(op, `it needs \`import 'relampago/${name}'\`, before GpuDevice.create()`, 'NOT_LOADED');
    }
    return entries[name];
};
