import { aborted } from './check.js';
import { linked } from './linked.js';
import { traceAll } from '../common/stack.js';
import { untilAborted } from '../common/until_aborted.js';

/**
 * @import { Delta, TokenLogprobs, ToolCall } from '../types/llm/index.js'
 * @import { Piece } from './engines.js'
 */

/**
 * Ends the uses of answers that were never read.
 * @type {FinalizationRegistry<() => void>}
 */
const registry = new FinalizationRegistry((release) => release());

/** An answer: an async iterable of text that begins to be generated when it is first asked for. */
export class Generation {
    #start;
    #signal;
    #cancel;
    #release;
    /** @type {Promise<void> | undefined} */
    #done;
    /**
     * Deltas that were not read yet.
     * @type {Delta[]}
     */
    #pieces = [];
    #text = '';
    #reasoning = '';
    /** @type {ToolCall[]} */
    #calls = [];
    /**
     * Functions that continue the callers that wait for the next piece.
     * @type {((value?: unknown) => void)[]}
     */
    #waiting = [];
    /** Ends generation, once it has begun. */
    #stop = () => {};
    #iterated = false;
    #ended = false;
    /** @type {unknown} */
    #error;
    /** @type {string | null} */
    #finishReason = null;
    /** @type {number[]} */
    #tokens = [];
    /** @type {TokenLogprobs[]} */
    #logprobs = [];
    /** @type {Pick<Piece, 'promptTokens' | 'toFirst' | 'sinceFirst'>} */
    #times = {};
    /** The number of tokens that existed before. */
    #resumed = 0;

    /**
     * `start` begins to generate with a function for pieces; `cancel` ends that. `release` is called after the end.
     * @param {(push: (piece: Piece) => void) => Promise<string | undefined>} start
     * @param {() => void} cancel
     * @param {AbortSignal | undefined} signal
     * @param {() => void} release
     */
    constructor(start, cancel, signal, release) {
        this.#start = start;
        this.#cancel = cancel;
        this.#signal = signal;
        this.#release = release;
        registry.register(this, release);
    }

    /** The ids of the tokens generated so far. */
    get tokens() {
        return [...this.#tokens];
    }

    /** For each of these tokens its probability and that of the likeliest ones, if they were asked for. */
    get logprobs() {
        return [...this.#logprobs];
    }

    /** Why generation ended: 'stop', 'length' or 'tool_calls'; null before it has. */
    get finish_reason() {
        return this.#finishReason;
    }

    get usage() {
        const { promptTokens = 0, toFirst = null, sinceFirst = 0 } = this.#times;
        const completion = this.#tokens.length;
        const afterFirst = completion - this.#resumed - 1;
        return {
            prompt_tokens: promptTokens,
            completion_tokens: completion,
            total_tokens: promptTokens + completion,
            time_to_first_token_ms: toFirst,
            tokens_per_second: afterFirst > 0 && sinceFirst > 0 ? afterFirst / (sinceFirst / 1000) : null,
        };
    }

    /** The text so far. */
    get content() {
        return this.#text;
    }

    /** The reasoning so far. */
    get reasoning_content() {
        return this.#reasoning;
    }

    /** The calls so far. */
    get tool_calls() {
        return this.#calls.map(({ function: called, ...call }) => ({ ...call, function: { ...called } }));
    }

    /** The answer so far as a message. */
    get message() {
        /** @type {Record<string, any>} */
        const message = { role: 'assistant', content: this.#text };
        this.#reasoning && (message.reasoning_content = this.#reasoning);
        this.#calls.length > 0 && (message.tool_calls = this.tool_calls);
        return message;
    }

    /** The deltas of the answer, in OpenAI's form. */
    deltas() {
        return this.#iterate((delta) => delta, () => this.#wholeMessage());
    }

    /** The whole answer. */
    async text() {
        await this.#run();
        if (this.#error) {
            throw this.#error;
        }
        return this.#text;
    }

    [Symbol.asyncIterator]() {
        return this.#iterate(({ content }) => content, () => this.#whole());
    }

    /**
     * Iterates over the deltas' parts that `part` returns; a second iteration is `again`.
     * @template T
     * @param {(delta: Delta) => T | undefined} part
     * @param {() => AsyncGenerator<T>} again
     * @returns {AsyncIterableIterator<T>}
     */
    #iterate(part, again) {
        if (this.#iterated) {
            return again();
        }
        this.#iterated = true;
        this.#run();
        let left = false;
        return {
            next: async () => (left ? { done: true, value: undefined } : this.#next(part)),
            // The caller left the loop, and does not wait for what is under way.
            return: async (/** @type {any} */ value) => {
                left = true;
                this.#stop();
                return { done: true, value };
            },
            [Symbol.asyncIterator]() {
                return this;
            },
        };
    }

    async *#whole() {
        yield this.text();
    }

    async *#wholeMessage() {
        await this.text();
        const { role: _, tool_calls, ...delta } = this.message;
        yield tool_calls ? { ...delta, tool_calls: tool_calls.map((/** @type {ToolCall} */ call, /** @type {number} */ index) => ({ index, ...call })) } : delta;
    }

    /**
     * @template T
     * @param {(delta: Delta) => T | undefined} part
     * @returns {Promise<IteratorResult<T>>}
     */
    async #next(part) {
        for (;;) {
            while (this.#pieces.length === 0 && !this.#ended) {
                await new Promise((resolve) => this.#waiting.push(resolve));
            }
            if (this.#pieces.length === 0) {
                break;
            }
            const value = part(/** @type {Delta} */ (this.#pieces.shift()));
            if (value !== undefined) {
                return { done: false, value };
            }
        }
        if (this.#error) {
            throw this.#error;
        }
        return { done: true, value: undefined };
    }

    #wake() {
        this.#waiting.splice(0).forEach((resolve) => resolve());
    }

    /** Generates, once; the promise never rejects. */
    #run() {
        this.#done ??= this.#generate().finally(() => {
            this.#ended = true;
            this.#release();
            this.#wake();
        });
        return this.#done;
    }

    async #generate() {
        const { controller, unlink } = linked(this.#signal);
        this.#stop = () => controller.abort();
        const push = (/** @type {Piece} */ piece) => controller.signal.aborted || this.#push(piece);
        try {
            this.#finishReason = (await untilAborted(controller.signal, () => this.#start(push), aborted, this.#cancel)) ?? null;
        } catch (error) {
            this.#error = error;
        } finally {
            unlink();
        }
    }

    /** @param {Piece} piece */
    #push({ deltas, tokens, logprobs, promptTokens, resumed = this.#resumed, toFirst, sinceFirst }) {
        this.#resumed = resumed;
        this.#tokens.push(...tokens);
        this.#logprobs.push(...logprobs);
        this.#times = { promptTokens, toFirst, sinceFirst };
        deltas.forEach((delta) => this.#add(delta));
        deltas.length > 0 && this.#wake();
    }

    /** @param {Delta} delta */
    #add(delta) {
        const { content = '', reasoning_content = '', tool_calls = [] } = delta;
        this.#text += content;
        this.#reasoning += reasoning_content;
        for (const { index, function: called, ...call } of tool_calls) {
            // The first delta of a call has all but its arguments.
            const { id = '', type = 'function' } = call;
            const known = this.#calls[index] ??= { id, type, function: { name: called.name ?? '', arguments: '' } };
            known.function.arguments += called.arguments;
        }
        this.#pieces.push(delta);
    }

    static {
        traceAll(this.prototype, ['text']);
    }
}
