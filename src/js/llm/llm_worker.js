// Does in a worker what a page asks of its engine.

import { Engine } from './engine.js';
import { RelampagoError } from './error.js';

const engine = new Engine();

onmessage = async ({ data: [call, method, ...values] }) => {
    try {
        if (method === 'generate') {
            values.push((piece) => postMessage([call, undefined, undefined, piece]));
        }
        postMessage([call, await engine[method](...values)]);
    } catch (error) {
        const { code, message } = error;
        postMessage([call, undefined, { code: error instanceof RelampagoError ? code : undefined, message }]);
    }
};
