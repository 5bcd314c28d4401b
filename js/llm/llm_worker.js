// Runs the calls of a page's engine in a worker.

import { Engine } from './engine.js';
import { RelampagoError } from '../common/error.js';

/** @import { Piece } from './engines.js' */

export const engine = new Engine();

/** The methods that send pieces before they end. */
const PUSHING = ['generate', 'tune'];

/**
 * The methods that a page calls, by their names.
 * @type {Record<string, any>}
 */
const methods = engine;

onmessage = async ({ data: [call, method, ...values] }) => {
    try {
        if (PUSHING.includes(method)) {
            values.push((/** @type {Piece} */ piece) => postMessage([call, undefined, undefined, piece]));
        }
        const result = await methods[method](...values);
        // The buffer of a piece goes back.
        method === 'write' ? postMessage([call, values[0].buffer], { transfer: [values[0].buffer] }) : postMessage([call, result]);
    } catch (/** @type {any} */ error) {
        const { code, message } = error;
        postMessage([call, undefined, { code: error instanceof RelampagoError ? code : undefined, message }]);
    }
};
