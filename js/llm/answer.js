// Answers: checks their options, and begins them.

import { startChat } from './chat.js';
import * as check from './check.js';
import { RelampagoError } from '../common/error.js';
import { Generation } from './generation.js';
import { jsonOf } from './json.js';

/**
 * @import { AnyEngine, Current, Piece } from './engines.js'
 * @import { Check } from './check.js'
 */

/**
 * The checks of options for the answers of models and of sessions.
 * @type {Record<string, Check>}
 */
export const ANSWER = {
    max_tokens: check.count,
    max_completion_tokens: check.count,
    temperature: check.number,
    top_k: check.count,
    top_p: check.number,
    min_p: check.number,
    repetition_penalty: check.number,
    presence_penalty: check.number,
    frequency_penalty: check.number,
    logit_bias: check.biases,
    logprobs: check.boolean,
    top_logprobs: check.count,
    guess: check.boolean,
    response_format: check.responseFormat,
    tools: check.plain,
    tool_choice: check.plain,
    parallel_tool_calls: check.boolean,
    tool_format: check.text,
    chat_template_kwargs: check.plain,
    after: (list, what) => [...check.tokens(list, what)],
    seed: check.seed,
    stop: check.stops,
    stream: check.boolean,
    signal: check.abortSignal,
};

const randomSeed = () => crypto.getRandomValues(new Uint32Array(1))[0];

/** The largest number of characters of a schema that an error shows. */
const SHOWN = 200;

/**
 * An error that shows only the beginning of a long schema.
 * @param {any} error
 * @param {string} schema
 */
const shortened = (error, schema) => {
    const isLong = schema.length > SHOWN && error.message.includes(schema);
    return isLong ? new RelampagoError(error.code, error.message.replace(schema, () => `${schema.slice(0, SHOWN)}…`)) : error;
};

/**
 * The request of a conversation for the module of templates: the messages and the options that it needs, as JSON.
 * @param {any[]} messages
 * @param {any} options
 */
function conversation(messages, { tools, tool_choice, parallel_tool_calls, tool_format, chat_template_kwargs, json_schema, seed }) {
    const options = { tools, tool_choice, parallel_tool_calls, tool_format, chat_template_kwargs, json_schema, seed };
    return jsonOf({ messages, ...options });
}

/**
 * Generates on an engine. Before that, it loads the module that JSON schemas and calls need.
 * @param {AnyEngine} engine
 * @param {number} number
 * @param {any} request
 * @param {(piece: Piece) => void} push
 * @returns {Promise<string | undefined>}
 */
export async function generated(engine, number, { messages, ...request }, push) {
    const schema = request.options.json_schema;
    if (messages) {
        request.conversation = conversation(messages, request.options);
    }
    if (schema === undefined) {
        return engine.generate(number, request, push);
    }
    await startChat(engine);
    return engine.generate(number, request, push).catch((error) => {
        throw shortened(error, schema);
    });
}

/**
 * Refuses functions for a text, which has no calls.
 * @param {any} options
 */
export function checkText({ tools }) {
    if (tools?.length > 0) {
        throw check.invalid('tools', tools, 'left out: a text has no calls, a conversation does');
    }
}

/**
 * Returns an answer with checked options. `current` has the engine and counts its requests; `generate` begins to generate
 * with the request's number, the engine's options, and a function for pieces. `keep` keeps the objects that the answer
 * uses, and returns a function that releases them.
 * @param {Current} current
 * @param {any} options
 * @param {(number: number, options: any, push: (piece: Piece) => void) => Promise<string | undefined>} generate
 * @param {() => () => void} [keep]
 */
export function answer(current, { signal, stream: _, max_completion_tokens, ...options }, generate, keep = () => () => {}) {
    if (max_completion_tokens !== undefined && options.max_tokens !== undefined) {
        throw check.invalid('max_completion_tokens', max_completion_tokens, 'given without `max_tokens`, which means the same');
    }
    options.max_tokens ??= max_completion_tokens;
    options.seed ??= randomSeed();
    options.json_schema = options.response_format;
    if (options.top_logprobs !== undefined && !options.logprobs) {
        throw check.invalid('top_logprobs', options.top_logprobs, 'given with `logprobs: true`');
    }
    // OpenAI's two options are one here.
    options.top_logprobs = options.logprobs ? options.top_logprobs ?? 0 : undefined;
    const number = ++current.requests;
    return new Generation((push) => generate(number, options, push), () => current.engine.cancel(number), signal, keep());
}
