// Functions of tensors by NumPy's and PyTorch's names: a module of its own, which makes the nodes that tensors need for them.

import load from '#numeric';
import { located } from '../common/loader.js';
import { entryOf } from '../npm/index.js';
import { call } from './functions.js';

export { RelampagoError } from '../npm/index.js';

export const moduleUrl = located(() => new URL('./relampago_numeric.wasm', import.meta.url));

const { init, host } = entryOf('numeric', load, moduleUrl, { call });

/** How the module's file is read, which `node.js` replaces. */
export { host };

export default init;
