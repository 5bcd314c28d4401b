// The functions of `relampago/train`, whose module is loaded apart, and only by those who import that entry.

import { failure } from './shape.js';

/** The entry, if it was imported. */
let training;

/** Stores the functions of the entry: the one that loads its module, and those of the module. */
export const extend = (entry) => {
    training = entry;
};

/** Loads the module of the entry if it was imported, so that calls need not wait. */
export const extended = () => training?.load();

/** Returns the nodes of gradients as words: see `added`. */
export const differentiate = (op, words) => {
    if (!training) {
        const message = "gradients come with `import 'relampago/train'`, before GpuDevice.create()";
        throw failure(op, message, 'NOT_LOADED');
    }
    return training.differentiate(words);
};
