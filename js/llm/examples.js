// Examples that a model learns from.

import * as check from './check.js';
import { jsonOf } from './json.js';
import { RelampagoError } from '../common/error.js';

/**
 * Returns examples as JSON, as lines of a file have them.
 * @param {any} list
 */
export function examplesOf(list) {
    if (!Array.isArray(list)) {
        throw check.invalid('examples', list, 'an array of texts and of conversations');
    }
    return list.map((example, i) => jsonOf(exampleOf(example, `examples[${i}]`)));
}

/**
 * Returns an example: a text, a list of messages, or an object with one of these.
 * @param {any} example
 * @param {string} what
 */
function exampleOf(example, what) {
    if (typeof example === 'string') {
        return { text: example };
    }
    const { messages = example, text } = Object(example);
    if (typeof text === 'string') {
        return { text };
    }
    if (!Array.isArray(messages)) {
        throw check.invalid(what, example, 'a text or an array of messages');
    }
    try {
        return { messages: check.messages(messages) };
    } catch (/** @type {any} */ error) {
        throw new RelampagoError(error.code, `\`${what}\`: ${error.message}`, error);
    }
}
