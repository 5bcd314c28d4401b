import { aborted } from './check.js';
import { linked } from './linked.js';
import { traceAll } from '../common/stack.js';
import { untilAborted } from '../common/until_aborted.js';

/** Ends the uses of answers that were never read. */
const registry = new FinalizationRegistry((release) => release());

/** An answer: an async iterable of text that begins to be generated when it is first asked for. */
export class Generation {
    #start;
    #signal;
    #cancel;
    #release;
    #done;
    /** Pieces that were not read yet. */
    #pieces = [];
    #text = '';
    /** Those who wait for the next piece. */
    #waiting = [];
    /** Ends generation, once it has begun. */
    #stop;
    #iterated = false;
    #ended = false;
    #error;
    #finishReason = null;
    #tokens = [];
    #logprobs = [];
    #times = {};
    /** The number of tokens that existed before. */
    #resumed = 0;

    /** `start` begins to generate with a function for pieces; `cancel` ends that. `release` is called after the end. */
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

    /** Why generation ended: 'stop' or 'length'; null before it has. */
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

    /** The whole answer. */
    async text() {
        await this.#run();
        if (this.#error) {
            throw this.#error;
        }
        return this.#text;
    }

    [Symbol.asyncIterator]() {
        if (this.#iterated) {
            return this.#whole();
        }
        this.#iterated = true;
        this.#run();
        let left = false;
        return {
            next: async () => (left ? { done: true, value: undefined } : this.#next()),
            // The caller left the loop, and does not wait for what is under way.
            return: async (value) => {
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

    async #next() {
        while (this.#pieces.length === 0 && !this.#ended) {
            await new Promise((resolve) => this.#waiting.push(resolve));
        }
        if (this.#pieces.length > 0) {
            return { done: false, value: this.#pieces.shift() };
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
        const push = (piece) => controller.signal.aborted || this.#push(piece);
        try {
            this.#finishReason = await untilAborted(controller.signal, () => this.#start(push), aborted, this.#cancel);
        } catch (error) {
            this.#error = error;
        } finally {
            unlink();
        }
    }

    #push({ text, tokens, logprobs, promptTokens, resumed = this.#resumed, toFirst, sinceFirst }) {
        this.#resumed = resumed;
        this.#tokens.push(...tokens);
        this.#logprobs.push(...logprobs);
        this.#times = { promptTokens, toFirst, sinceFirst };
        this.#text += text;
        if (text) {
            this.#pieces.push(text);
            this.#wake();
        }
    }

    static {
        traceAll(this.prototype, ['text']);
    }
}
