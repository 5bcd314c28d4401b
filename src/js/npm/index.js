import { DeviceBuffer, GpuCommandBatch, GpuDevice, Program, RelampagoError, load, ops } from './core.js';
import { loader } from './loader.js';

import './page.js';

export * from './extras.js';
export { DeviceBuffer, GpuCommandBatch, GpuDevice, Program, RelampagoError };

/** For what is loaded below; no part of the interface. */
export { ops };

const { create } = GpuDevice;
GpuDevice.create = async (options) => {
    if (options?.worker || options?.threads !== undefined) {
        return (await import('./workers/create.js')).create(options, create);
    }
    return create(options);
};

// The smallest modules with an instruction of each set: () => v128.const 0, and
// () => f32x4.relaxed_madd of three of those.
const zero = [253, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const accepts = (...code) => {
    const body = [0, ...code, 11];
    const section = [1, body.length, ...body];
    return WebAssembly.validate(new Uint8Array([
        0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, section.length, ...section,
    ]));
};

/** The module for this engine's instruction set. */
export function moduleUrl() {
    if (accepts(...zero, ...zero, ...zero, 253, 133, 2)) {
        return new URL('./relampago_relaxed.wasm', import.meta.url);
    }
    if (accepts(...zero)) {
        return new URL('./relampago_simd128.wasm', import.meta.url);
    }
    throw new RelampagoError('UNSUPPORTED', 'this engine lacks WebAssembly SIMD');
}

export default loader(load, moduleUrl);
