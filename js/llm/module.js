// The WebAssembly modules, each compiled once and then sent to workers.

import { host } from './host.js';
import { moduleFor, moduleUrl } from '../common/instructions.js';
import { loader, located } from '../common/loader.js';

/**
 * @param {any} from
 * @returns {Promise<WebAssembly.Module>}
 */
async function compile(from) {
    const source = await from;
    if (typeof Response === 'function' && source instanceof Response) {
        if (!source.ok) {
            throw new Error(`the server answers ${source.status}`);
        }
        // Servers that send another type than application/wasm are answered by the bytes.
        const streamed = WebAssembly.compileStreaming?.(source.clone()).catch(() => {});
        return (await streamed) ?? WebAssembly.compile(await source.arrayBuffer());
    }
    const isModule = Object.prototype.toString.call(source) === '[object WebAssembly.Module]';
    return isModule ? source : WebAssembly.compile(source);
}

/**
 * Returns functions that compile a module once: from a source or from `url()`, and the same with the module.
 * @param {() => URL} url
 */
function once(url) {
    /** @type {WebAssembly.Module | undefined} */
    let module;
    const start = loader(async ({ module_or_path }) => {
        module = await compile(module_or_path);
    }, url);
    const init = (/** @type {any} */ source) => start(source, host.readModule);
    const compiled = async () => {
        await init(undefined);
        return /** @type {WebAssembly.Module} */ (/** @type {unknown} */ (module));
    };
    return { init, compiled };
}

export const chatModuleUrl = located(() => new URL('./relampago_chat.wasm', import.meta.url));

/** The module whose memory workers share. */
const sharedUrl = moduleFor(() => ({
    relaxed: new URL('./relampago_shared_relaxed.wasm', import.meta.url),
    simd128: new URL('./relampago_shared_simd128.wasm', import.meta.url),
}));

/** The module that runs models and tunes them, for one thread and for workers that share its memory. */
const tuneUrl = moduleFor(() => ({
    relaxed: new URL('./relampago_tune_relaxed.wasm', import.meta.url),
    simd128: new URL('./relampago_tune_simd128.wasm', import.meta.url),
}));
const tuneSharedUrl = moduleFor(() => ({
    relaxed: new URL('./relampago_tune_shared_relaxed.wasm', import.meta.url),
    simd128: new URL('./relampago_tune_shared_simd128.wasm', import.meta.url),
}));

const models = once(moduleUrl);
const sharing = once(sharedUrl);
const tune = once(tuneUrl);
const tuneSharing = once(tuneSharedUrl);
const chat = once(chatModuleUrl);

/** The module that runs models. */
export const { compiled } = models;

/** The module that runs models by workers that share its memory. */
export const { compiled: compiledShared } = sharing;

/** The module that tunes. */
export const { compiled: compiledTune } = tune;

/** The module that tunes by workers that share its memory. */
export const { compiled: compiledTuneShared } = tuneSharing;

/** The module of chat templates and JSON schemas. */
export const { compiled: compiledChat } = chat;

/**
 * @param {any} [source]
 * @param {any} [chatSource]
 */
export async function init(source, chatSource) {
    await Promise.all([models.init(source), chatSource && chat.init(chatSource)]);
}
