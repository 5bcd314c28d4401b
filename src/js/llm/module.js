// The WebAssembly module, compiled once and then sent to workers.

import { host } from './host.js';
import { moduleUrl } from './instructions.js';
import { loader } from './loader.js';

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

const start = loader(compile, moduleUrl);

export const init = (source) => start(source, host.readModule);

export async function compiled() {
    await init();
    return module;
}
