// Gradients and optimizers: a module of its own, which makes the nodes that tensors need for them.

import load, { differentiate } from '#train';
import { loader, located } from '../common/loader.js';
import { announce, extend } from '../npm/index.js';

export { RelampagoError } from '../npm/index.js';
export { adam, adamw, clipByGlobalNorm, lion, sgd } from './optimizers.js';

export const moduleUrl = located(() => new URL('./relampago_train.wasm', import.meta.url));

const loaded = async (options) => {
    await load(options);
    extend('train', { differentiate });
};

const init = loader(loaded, moduleUrl);

/** How the module's file is read, which `node.js` replaces. */
export const host = { init };

announce(() => host.init());

export default init;
