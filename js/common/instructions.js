import { RelampagoError } from './error.js';
import { located } from './loader.js';

// The smallest modules that tell: a function that computes a vector, and says whether it is not zero.
const zero = [65, 0, 253, 17];
const nan = [65, 127, 253, 17];
const long = [65, 129, 32, 178, 253, 19]; // 4097, whose square has 25 digits
/** @param {number[]} code */
const gives = (...code) => {
    const body = [0, ...code, 253, 83, 11];
    const section = [1, body.length, ...body];
    const bytes = new Uint8Array([
        0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 7, 4, 1, 0, 0, 0, 10, section.length, ...section,
    ]);
    return WebAssembly.validate(bytes) && /** @type {() => number} */ (new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports[''])();
};

/** The instruction set that this engine should get a module for; undefined if it lacks SIMD. */
const chosen = () => {
    // What relaxed_max and relaxed_min give of a number and NaN, and whether relaxed_nmadd rounds once,
    // engines may choose; here it must be NaN, and once.
    if (gives(
        ...zero, ...nan, 253, 142, 2, ...zero, ...nan, 253, 141, 2, 253, 78,
        ...long, ...long, ...long, ...long, 253, 230, 1, 253, 134, 2, 253, 78,
    )) {
        return 'relaxed';
    }
    return gives(...nan) ? 'simd128' : undefined;
};

/**
 * Returns the function that chooses among the addresses of modules by the engine's instruction set.
 * @param {() => Record<'relaxed' | 'simd128', URL>} urls
 */
export const moduleFor = (urls) => located(() => {
    const set = chosen();
    if (set === undefined) {
        throw new RelampagoError('UNSUPPORTED', 'this engine lacks WebAssembly SIMD');
    }
    return urls()[set];
});

/** The module for this engine's instruction set. Bundlers look for these very expressions. */
export const moduleUrl = /* @__PURE__ */ moduleFor(() => ({
    relaxed: new URL('./relampago_relaxed.wasm', import.meta.url),
    simd128: new URL('./relampago_simd128.wasm', import.meta.url),
}));
