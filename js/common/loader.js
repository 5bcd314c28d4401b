import { RelampagoError } from './error.js';

/** @import { ModuleSource } from '../types/common/base.js' */

/**
 * The class of an object of any realm.
 * @param {unknown} value
 */
const classOf = (value) => Object.prototype.toString.call(value).slice(8, -1);

/**
 * Returns a source that the engine can compile: a response of this realm, bytes or a module.
 * @param {any} source
 */
const open = (source) => {
    const kind = classOf(source);
    if (kind === 'String' || kind === 'URL') {
        return fetch(String(source));
    }
    if (kind === 'Request') {
        return fetch(source);
    }
    // Only a response of this realm is compiled while it arrives.
    return kind === 'Response' && source.constructor !== Response ? source.arrayBuffer() : source;
};

/**
 * Names a source in an error.
 * @param {any} source
 */
const shown = (source) => {
    const kind = classOf(source);
    if (kind === 'Request' || kind === 'Response') {
        return source.url;
    }
    return Object(source) === source && kind !== 'URL' ? `an object (${kind})` : String(source);
};

/** Whether Next has bundled this script for its server. Its bundlers put a name in the place of this very expression. */
const isBundledByNext = () => {
    try {
        return process.env.NEXT_RUNTIME === 'nodejs';
    } catch {
        return false; // Not every host has `process`, and Deno may refuse its variables.
    }
};

/**
 * Returns an error of ours.
 * @param {string} place
 * @param {any} error
 */
const rethrown = (place, error) => {
    if (error instanceof RelampagoError) {
        return error;
    }
    const problem = `the WebAssembly module could not be loaded from ${place}: ${error?.message}`;
    const general = "give init() the bytes of the package's .wasm file, or its URL";
    const advice = isBundledByNext() ? `add 'relampago' to serverExternalPackages in next.config, or ${general}` : general;
    return new RelampagoError('NOT_LOADED', `${problem}; ${advice}`, error);
};

/**
 * Returns `moduleUrl` with an error of ours where a bundle has no `import.meta.url`.
 * @param {() => URL} moduleUrl
 */
export const located = (moduleUrl) => () => {
    try {
        return moduleUrl();
    } catch (error) {
        throw rethrown('an unknown place, since the bundle lacks import.meta.url', error);
    }
};

/**
 * Returns the function that loads the module once, from where it is told or else from `moduleUrl()`.
 * `read` opens a source where the host has a way of its own.
 * @param {(options: { module_or_path: any }) => Promise<unknown>} load
 * @param {() => URL} moduleUrl
 */
export const loader = (load, moduleUrl) => {
    /** @type {Promise<void> | undefined} */
    let loading;
    /**
     * @param {ModuleSource | Promise<ModuleSource> | undefined} given
     * @param {(source: ModuleSource) => unknown} read
     */
    const start = async (given, read) => {
        const source = (await given) ?? moduleUrl();
        try {
            await load({ module_or_path: read(source) ?? open(source) });
        } catch (error) {
            throw rethrown(shown(source), error);
        }
    };
    /**
     * @param {ModuleSource | Promise<ModuleSource>} [source]
     * @param {(source: ModuleSource) => unknown} [read]
     */
    return (source, read = () => {}) => {
        if (loading) {
            Promise.resolve(source).catch(() => {}); // Nobody else waits for a promise that is not needed.
        }
        loading ??= start(source, read).catch((error) => {
            loading = undefined; // The next call may have more luck with the network.
            throw rethrown('what init() was given', error);
        });
        return loading;
    };
};
