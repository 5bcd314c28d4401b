// Functions of tensors by NumPy's and PyTorch's names: a module of its own, which makes the nodes that tensors need for them.

import load from '#numeric';
import { loader, located } from '../common/loader.js';
import { announce, extend } from '../npm/index.js';
import { call } from './functions.js';

export { RelampagoError } from '../npm/index.js';

export const moduleUrl = located(() => new URL('./relampago_numeric.wasm', import.meta.url));

const loaded = async (options) => {
    await load(options);
    extend('numeric', { call });
};

const init = loader(loaded, moduleUrl);

/** How the module's file is read, which `node.js` replaces. */
export const host = { init };

announce(() => host.init());

export default init;
