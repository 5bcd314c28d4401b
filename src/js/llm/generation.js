import { aborted } from './check.js';

/** An answer: an async iterable of text that begins to be generated when it is first asked for. */
export class Generation {
    #start;
    #signal;
    #cancel;
    #done;
    /** Pieces that nobody has iterated over yet. */
    #pieces = [];
    #text = '';
    #wake = () => {};
    #iterated = false;
    #ended = false;
    #error;
    #finishReason = null;
    #tokens = [];
    #logprobs = [];
    #times = {};

    /** `start` begins to generate with a function for pieces; `cancel` ends that. */
    constructor(start, cancel, signal) {
        this.#start = start;
        this.#cancel = cancel;
        this.#signal = signal;
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
        return {
            prompt_tokens: promptTokens,
            completion_tokens: completion,
            total_tokens: promptTokens + completion,
            time_to_first_token_ms: toFirst,
            tokens_per_second: completion > 1 && sinceFirst > 0 ? (completion - 1) / (sinceFirst / 1000) : null,
        };
    }

    /** The whole answer. */
    async text() {
        await this.#run();
        if (this.#error) {
            throw this.#error;
        }
        return this.#text;
    }

    async *[Symbol.asyncIterator]() {
        if (this.#iterated) {
            yield this.text(); // A second iteration gets the whole answer at once.
            return;
        }
        this.#iterated = true;
        this.#run();
        try {
            for (;;) {
                while (this.#pieces.length > 0) {
                    yield this.#pieces.shift();
                }
                if (this.#error) {
                    throw this.#error;
                }
                if (this.#ended) {
                    return;
                }
                await new Promise((resolve) => {
                    this.#wake = resolve;
                });
            }
        } finally {
            if (!this.#ended) {
                this.#cancel(); // The caller left the loop.
            }
        }
    }

    /** Generates, once; the promise never rejects. */
    #run() {
        this.#done ??= this.#generate().finally(() => {
            this.#ended = true;
            this.#wake();
        });
        return this.#done;
    }

    async #generate() {
        const signal = this.#signal;
        if (signal?.aborted) {
            this.#error = aborted(signal);
            return;
        }
        signal?.addEventListener('abort', this.#cancel, { once: true });
        try {
            this.#finishReason = await this.#start((piece) => this.#push(piece));
        } catch (error) {
            this.#error = error.code === 'ABORTED' ? aborted(signal) : error;
        } finally {
            signal?.removeEventListener('abort', this.#cancel);
        }
    }

    #push({ text, tokens, logprobs, promptTokens, toFirst, sinceFirst }) {
        this.#tokens.push(...tokens);
        this.#logprobs.push(...candidates(logprobs));
        this.#times = { promptTokens, toFirst, sinceFirst };
        this.#text += text;
        if (text) {
            this.#pieces.push(text);
            this.#wake();
        }
    }
}

/** Lists what the module packs: a count, and pairs of a token and its logarithm, of which the first is the chosen one. */
function candidates(numbers) {
    const all = [];
    for (let at = 0; at < numbers.length;) {
        const count = numbers[at++] + 1;
        const pairs = Array.from({ length: count }, (_, i) => ({ id: numbers[at + 2 * i], logprob: numbers[at + 2 * i + 1] }));
        at += 2 * count;
        all.push({ ...pairs[0], top_logprobs: pairs.slice(1) });
    }
    return all;
}
