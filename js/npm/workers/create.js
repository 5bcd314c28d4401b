// Devices with workers and threads, in browsers and wherever else workers are those of browsers.

import { creating } from './creating.js';

/**
 * Compiles the module; where a server names another type than WebAssembly's, from its bytes.
 * @param {URL} url
 */
const compile = async (url) => {
    const response = await fetch(url);
    if (!response.ok) {
        throw new Error(`the server answers ${response.status} to ${response.url}`);
    }
    const streamed = WebAssembly.compileStreaming(response.clone());
    return streamed.catch(async () => WebAssembly.compile(await response.arrayBuffer()));
};

// Bundlers look for these very expressions.
export const create = creating({
    spawn: () => new Worker(new URL('./relampago_worker.js', import.meta.url), { type: 'module' }),
    spawnSharing: () => new Worker(new URL('./relampago_threads.js', import.meta.url), { type: 'module' }),
    compile,
});
