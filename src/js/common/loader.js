import { RelampagoError } from './error.js';

/**
 * A function that loads the module once, from where it is told or else from `moduleUrl()`.
 * @param {(options: object) => Promise<unknown>} load
 * @param {() => URL} moduleUrl
 */
export const loader = (load, moduleUrl) => {
    let loading;
    const start = async (source) => {
        await load({ module_or_path: (await source) ?? moduleUrl() });
    };
    return (source) => {
        loading ??= start(source).catch((error) => {
            loading = undefined; // The next call may have more luck with the network.
            throw error instanceof RelampagoError
                ? error
                : new RelampagoError('NOT_LOADED', `the WebAssembly module could not be loaded: ${error.message}`, error);
        });
        return loading;
    };
};
