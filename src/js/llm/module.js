// The WebAssembly module, compiled once and then sent to workers.

import { host } from './host.js';
import { loader, located } from './loader.js';
import { RelampagoError } from './error.js';
import { chosen } from './instructions.js';

let module;

async function compile({ module_or_path }) {
    const source = await module_or_path;
    if (typeof Response === 'function' && source instanceof Response) {
        if (!source.ok) {
            throw new Error(`the server answers ${source.status}`);
        }
        // Servers that send another type than application/wasm are answered by the bytes.
        const streamed = WebAssembly.compileStreaming?.(source.clone()).catch(() => {});
        module = (await streamed) ?? (await WebAssembly.compile(await source.arrayBuffer()));
    } else {
        const isModule = Object.prototype.toString.call(source) === '[object WebAssembly.Module]';
        module = isModule ? source : await WebAssembly.compile(source);
    }
}

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

const start = loader(compile, moduleUrl);

export const init = (source) => start(source, host.readModule);

export async function compiled() {
    await init();
    return module;
}
