// Gradients and optimizers: a module of its own, which makes the nodes that tensors need for them.

import load, { differentiate } from '#train';
import { located } from '../common/loader.js';
import { entryOf } from '../npm/index.js';

export { RelampagoError } from '../npm/index.js';
export { adam, adamw, clipByGlobalNorm, lion, sgd } from './optimizers.js';

export const moduleUrl = located(() => new URL('./relampago_train.wasm', import.meta.url));

const { init, host } = entryOf('train', load, moduleUrl, { differentiate });

/** How the module's file is read, which `node.js` replaces. */
export { host };

export default init;
