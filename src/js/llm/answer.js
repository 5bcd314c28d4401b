// Answers: what may be asked for, and their beginning.

import { startChat } from './chat.js';
import * as check from './check.js';
import { Generation } from './generation.js';

/** The checks of options that answers of models and of sessions have. */
export const ANSWER = {
    max_tokens: check.count,
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
    response_format: check.responseFormat,
    after: (list, what) => [...check.tokens(list, what)],
    seed: check.seed,
    stop: check.stops,
    signal: check.abortSignal,
};

const randomSeed = () => crypto.getRandomValues(new Uint32Array(1))[0];

/** Generates on an engine; first loads what JSON schemas need. */
export async function generated(engine, number, request, push) {
    if (request.options.json_schema !== undefined) {
        await startChat(engine);
    }
    return engine.generate(number, request, push);
}

/**
 * Returns an answer with checked options. `current` has the engine and counts its requests; `generate` begins to generate
 * with the request's number, the engine's options, and a function for pieces.
 */
export function answer(current, { signal, ...options }, generate) {
    options.seed ??= randomSeed();
    options.json_schema = options.response_format;
    if (options.top_logprobs !== undefined && !options.logprobs) {
        throw check.invalid('top_logprobs', options.top_logprobs, 'given with `logprobs: true`');
    }
    // OpenAI's two options are one here.
    options.top_logprobs = options.logprobs ? options.top_logprobs ?? 0 : undefined;
    const number = ++current.requests;
    return new Generation((push) => generate(number, options, push), () => current.engine.cancel(number), signal);
}
