// The module of chat templates and JSON schemas, which a model or a request may need.

import { compiledChat } from './module.js';

/** The key of the chat template in a file's metadata. */
const KEY = 'tokenizer.chat_template';

/** @import { AnyEngine } from './engines.js' */

/**
 * The engines that have the module, or will.
 * @type {WeakMap<AnyEngine, Promise<void>>}
 */
const started = new WeakMap();

/**
 * Gives an engine the module, once.
 * @param {AnyEngine} engine
 */
export async function startChat(engine) {
    const starting = started.get(engine) ?? compiledChat().then((module) => engine.startChat(module));
    started.set(engine, starting);
    try {
        await starting;
    } catch (error) {
        started.delete(engine);
        throw error;
    }
}

/**
 * Begins to load the module if a piece of a file says that it will be needed; returns whether it does.
 * @param {Uint8Array} piece
 */
export function foresee(piece) {
    const isNeeded = new TextDecoder('latin1').decode(piece).includes(KEY);
    isNeeded && compiledChat().catch(() => {}); // The model's engine asks for it again.
    return isNeeded;
}
