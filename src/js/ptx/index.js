import load, { PtxKernel, PtxModule, buildKernel, targetNames } from './relampago.js';
import { RelampagoError } from './error.js';
import { loader } from './loader.js';

export { PtxKernel, PtxModule, RelampagoError, buildKernel, targetNames };

export function moduleUrl() {
    return new URL('./relampago_ptx.wasm', import.meta.url);
}

export default loader(load, moduleUrl);
