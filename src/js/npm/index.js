import { GpuDevice, RelampagoError, load } from './core.js';
import { chosen } from './instructions.js';
import { loader, located } from './loader.js';
import { remembering } from './tuning.js';

export { provideShaders } from './shaders_loader.js';
export {
    CustomOp, DeviceBuffer, GpuCommandBatch, GpuDevice, GpuMatmulCache, Program, RelampagoError, TensorView,
} from './core.js';

/** For what is loaded below; no part of the interface. */
export { checked, classOf, invalid, lengthOf, list, ops, part } from './core.js';

const { create } = GpuDevice;

/** Creates a device here or, where workers or threads are asked for, with the script that is loaded for these. */
const open = async (options) => {
    if (!options?.worker && (options?.threads ?? 1) === 1) {
        return create(options);
    }
    const workers = await import('./workers/create.js').catch((error) => {
        throw new RelampagoError('UNSUPPORTED', `no worker could be started: ${error.message}`, error);
    });
    return workers.create(options, create);
};

GpuDevice.create = async (options) => remembering(await open(options));
// The name that the Rust crate has for it.
GpuDevice.newAsync = (options) => GpuDevice.create(options);

/** The module for this engine's instruction set. */
export const moduleUrl = located(() => {
    switch (chosen()) {
        case 'relaxed':
            return new URL('./relampago_relaxed.wasm', import.meta.url);
        case 'simd128':
            return new URL('./relampago_simd128.wasm', import.meta.url);
        default:
            throw new RelampagoError('UNSUPPORTED', 'this engine lacks WebAssembly SIMD');
    }
});

export default loader(load, moduleUrl);
