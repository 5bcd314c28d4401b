import { GpuDevice, RelampagoError, load } from './core.js';
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

// The smallest modules that tell: a function that computes a vector, and says whether it is not zero.
const zero = [65, 0, 253, 17];
const nan = [65, 127, 253, 17];
const long = [65, 129, 32, 178, 253, 19]; // 4097, whose square has 25 digits
const gives = (...code) => {
    const body = [0, ...code, 253, 83, 11];
    const section = [1, body.length, ...body];
    const bytes = new Uint8Array([
        0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 7, 4, 1, 0, 0, 0, 10, section.length, ...section,
    ]);
    return WebAssembly.validate(bytes) && new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports['']();
};

/** The module for this engine's instruction set. */
export const moduleUrl = located(() => {
    // What relaxed_max and relaxed_min give of a number and NaN, and whether relaxed_nmadd rounds once,
    // engines may choose; here it must be NaN, and once.
    if (gives(
        ...zero, ...nan, 253, 142, 2, ...zero, ...nan, 253, 141, 2, 253, 78,
        ...long, ...long, ...long, ...long, 253, 230, 1, 253, 134, 2, 253, 78,
    )) {
        return new URL('./relampago_relaxed.wasm', import.meta.url);
    }
    if (gives(...nan)) {
        return new URL('./relampago_simd128.wasm', import.meta.url);
    }
    throw new RelampagoError('UNSUPPORTED', 'this engine lacks WebAssembly SIMD');
});

export default loader(load, moduleUrl);
