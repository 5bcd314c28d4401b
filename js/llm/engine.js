// A model in the WebAssembly module of this thread: that of a worker, or the caller's own.

import load, { Device, ModelBytes } from '#llm';
import loadChat from './chat_module.js';
import { Arrival } from './arrival.js';
import { aborted, disposed } from './check.js';
import { RelampagoError } from '../common/error.js';
import { pause } from '../common/pause.js';

/**
 * @import { Generation, Model, ModelFile, QuantizedMatrix, Session } from '#llm'
 * @import { Delta, TokenLogprobs } from '../types/llm/index.js'
 * @import { AnswerRequest, AnyEngine, Piece } from './engines.js'
 *
 * @typedef {Pick<Piece, 'promptTokens' | 'toFirst' | 'sinceFirst'>} Times
 * @typedef {Session | QuantizedMatrix} Kept what an engine keeps by a number
 */

/**
 * The module stops where it would otherwise go on with wrong data; then nothing of it is usable.
 * @param {any} error
 */
const lost = (error) => new RelampagoError('DEVICE_LOST', `the model's module failed, reload the model: ${error.message}`, error);

/**
 * Lists what the module packs: for each token the number of other candidates, and then pairs of an id and its logarithm, of
 * which the first is the token's. `textOf` returns the text of an id.
 * @param {Float64Array} numbers
 * @param {(id: number) => string} textOf
 */
const unpacked = (numbers, textOf) => {
    /** @type {TokenLogprobs[]} */
    const all = [];
    for (let at = 0; at < numbers.length;) {
        const count = numbers[at++] + 1;
        const candidates = Array.from({ length: count }, (_, i) => {
            const [id, logprob] = numbers.subarray(at + 2 * i);
            return { id, token: textOf(id), logprob };
        });
        at += 2 * count;
        all.push({ ...candidates[0], top_logprobs: candidates.slice(1) });
    }
    return all;
};

/**
 * Tells the tokens of a session after an answer, unless the module has failed.
 * @param {Session} session
 * @param {(piece: Piece) => void} push
 */
const tellTokens = (session, push) => {
    try {
        push({ deltas: [], tokens: [], logprobs: [], read: session.tokens() });
    } catch {}
};

/**
 * The deltas of a piece of text, in OpenAI's form.
 * @param {Generation} generation
 * @param {string} text
 * @param {boolean} hasEnded
 * @returns {Delta[]}
 */
const divided = (generation, text, hasEnded) => {
    const lists = generation.divide(text, hasEnded);
    return lists.length > 0 ? lists.flatMap((list) => JSON.parse(list)) : text ? [{ content: text }] : [];
};

/**
 * Pushes the text that an interrupted answer holds back, so that its text is complete unless the module has failed.
 * @param {Generation} generation
 * @param {Times | undefined} times
 * @param {(piece: Piece) => void} push
 */
const pushRest = (generation, times, push) => {
    try {
        const text = generation.rest();
        const deltas = divided(generation, text, true);
        deltas.length > 0 && push({ deltas, tokens: [], logprobs: [], ...times });
    } catch {}
};

/**
 * Returns what an earlier call has made for the present one.
 * @template T
 * @param {T | undefined} value
 */
const needed = (value) => {
    if (value === undefined) {
        throw new TypeError('a call came before those that it needs');
    }
    return value;
};

/**
 * Frees something of the module, which after a trap may still count it as used: then nothing of it is usable.
 * @param {{ free(): unknown } | undefined} one
 */
const release = (one) => {
    try {
        return one?.free();
    } catch {}
};

export class Engine {
    /** Pieces that are being written: a piece may be of a buffer that the next one is read into. */
    mostPieces = 1;
    /** @type {WebAssembly.Memory | undefined} */
    #memory;
    /** @type {ModelBytes | undefined} */
    #bytes;
    /** @type {ModelFile | undefined} */
    #file;
    /**
     * The file, if its matrices go to a GPU as they arrive.
     * @type {Arrival | undefined}
     */
    #arrival;
    /** @type {Model | undefined} */
    #loaded;
    #disposed = false;
    /**
     * The error of a module that failed, which is that of all later calls.
     * @type {RelampagoError | undefined}
     */
    #loss;
    /**
     * Sessions and matrices by number.
     * @type {Map<number, Kept>}
     */
    #sessions = new Map();
    /** @type {Map<string, Device>} */
    #devices = new Map();
    #numbers = 0;
    /** @type {Set<number>} */
    #cancelled = new Set();
    /** @type {Promise<unknown>} */
    #turn = Promise.resolve();

    /**
     * Loads the module, and allocates memory for a file. A file that was begun before is dropped. With the options of
     * `open`, whose `device` is `'gpu'` or `'auto'`, matrices go to a GPU as they arrive, for `'auto'` if there is a
     * hardware GPU. Returns whether they do. Rejects with `NO_GPU`, `OUT_OF_MEMORY`.
     * @param {WebAssembly.Module | undefined} module
     * @param {number} size
     * @param {any} [options]
     */
    async start(module, size, options) {
        ({ memory: this.#memory } = await load({ module_or_path: module }));
        await this.#free();
        const device = options && await Device.open(options.device);
        if (device?.backend === 'gpu') {
            this.#arrival = new Arrival(device, size, options);
            return true;
        }
        device?.free();
        this.#bytes = new ModelBytes(size);
        return false;
    }

    get #model() {
        return needed(this.#loaded);
    }

    /** Frees the loaded part of a model's file; resolves when that is done. */
    #free() {
        const freed = [this.#bytes, this.#file, this.#arrival].map(release);
        this.#bytes = this.#file = this.#arrival = undefined;
        return Promise.all(freed);
    }

    /**
     * Loads the module of chat templates and JSON schemas.
     * @param {WebAssembly.Module} module
     */
    async startChat(module) {
        await loadChat({ module_or_path: module });
    }

    /**
     * Allocates memory for another part of a model that is split.
     * @param {number} size
     */
    addPart(size) {
        needed(this.#bytes).addPart(size);
    }

    /**
     * Whether the last part's metadata are complete.
     * @param {number} size
     */
    hasHead(size) {
        return needed(this.#bytes).hasHead(size);
    }

    /**
     * Returns the description of a model, from the beginnings of files of these sizes.
     * @param {number[]} sizes
     * @param {any} options
     */
    inspect(sizes, options) {
        return needed(this.#bytes).inspect(sizes, options);
    }

    /**
     * Appends a piece of the file.
     * @param {Uint8Array} piece
     */
    write(piece) {
        return needed(this.#arrival ?? this.#bytes).write(piece);
    }

    /** Reads the metadata of the file, which is complete; returns whether it has a chat template. */
    async finish() {
        const bytes = this.#arrival ? await this.#arrival.finish() : this.#bytes;
        if (!bytes) {
            return needed(this.#arrival).hasChatTemplate();
        }
        this.#arrival?.free();
        this.#arrival = this.#bytes = undefined;
        this.#file = bytes.finish();
        return this.#file.hasChatTemplate();
    }

    /**
     * Makes a model of the file; returns its `info`.
     * @param {any} options
     */
    async open(options) {
        if (this.#arrival) {
            this.#loaded = await this.#arrival.open();
            this.#free();
            return this.#model.info();
        }
        const file = needed(this.#file);
        this.#file = undefined;
        this.#loaded = await file.load(options);
        return this.#model.info();
    }

    /**
     * @param {string} text
     * @param {boolean} special
     */
    tokenize(text, special) {
        this.#check();
        return this.#model.tokenize(text, special);
    }

    /** @param {ArrayLike<number>} tokens */
    detokenize(tokens) {
        this.#check();
        return this.#model.detokenize(tokens);
    }

    /**
     * One after the other: each needs all of the thread, and the model's memory. Calls that run when the engine is
     * disposed of end with that error, as in a worker.
     * @template T
     * @param {() => T | Promise<T>} work
     * @returns {Promise<T>}
     */
    #inTurn(work) {
        const result = this.#turn.then(async () => {
            this.#check();
            const value = await work();
            this.#check();
            return value;
        });
        this.#turn = result.catch(() => {});
        return result.catch((error) => {
            if (error instanceof RelampagoError) {
                throw error;
            }
            throw (this.#loss = lost(error));
        });
    }

    /** The steps of a decoded token. */
    explain() {
        return this.#inTurn(() => this.#model.explain());
    }

    /**
     * Makes an adapter of a file; returns its number and the number of layers that it changes.
     * @param {Uint8Array} bytes
     * @param {number | undefined} alpha
     */
    addLora(bytes, alpha) {
        return this.#inTurn(async () => [...await this.#model.addLora(bytes, alpha)]);
    }

    /** @param {number} number */
    removeLora(number) {
        this.#inTurn(() => this.#model.removeLora(number)).catch(() => {});
    }

    /**
     * Learns an adapter from examples, in a module that tunes; `push` gets the progress of each step. `cancel` ends the
     * tuning after the step that is running. Returns the adapter's files, its losses and its state.
     * @param {number} number
     * @param {string[]} examples
     * @param {any} options
     * @param {(progress: any) => void} push
     */
    tune(number, examples, options, push) {
        return this.#inTurn(() => this.#model.tune(examples, options, (progress) => {
            push(progress);
            return this.#isCancelled(number);
        }));
    }

    /**
     * A vector for each text; `number` cancels it, as a generation.
     * @param {number} number
     * @param {string[]} texts
     * @param {any} options
     */
    embed(number, texts, options) {
        return this.#inTurn(async () => {
            const values = await this.#readWhole(
                number,
                texts,
                (text) => this.#model.tokensToEmbed(text, options),
                (tokens, isCancelled) => this.#model.embed(tokens, options, isCancelled),
            );
            const length = values.length / texts.length;
            return texts.map((_, i) => values.slice(i * length, (i + 1) * length));
        });
    }

    /**
     * The score of each text for a query; `number` cancels it, as a generation.
     * @param {number} number
     * @param {string} query
     * @param {string[]} texts
     * @param {any} options
     */
    rank(number, query, texts, options) {
        return this.#inTurn(() => this.#readWhole(
            number,
            texts,
            (text) => this.#model.tokensToRank(query, text, options),
            (tokens, isCancelled) => this.#model.rank(tokens, isCancelled),
        ));
    }

    /**
     * Reads whole texts: `tokensOf` gives the tokens of each one, and `read` the values of all.
     * @param {number} number
     * @param {string[]} texts
     * @param {(text: string) => Uint32Array} tokensOf
     * @param {(tokens: Uint32Array[], isCancelled: () => boolean) => Promise<Float32Array>} read
     */
    async #readWhole(number, texts, tokensOf, read) {
        await pause(); // So that a cancellation that came before is known.
        this.#check(number);
        const tokens = texts.map((text, i) => {
            try {
                return tokensOf(text);
            } catch (error) {
                throw error instanceof RelampagoError ? new RelampagoError(error.code, `\`texts[${i}]\`: ${error.message}`, error) : error;
            }
        });
        const values = await read(tokens, () => this.#isCancelled(number));
        this.#check(number);
        return values;
    }

    /**
     * Makes a session, of saved bytes if there are any, which become the engine's; returns its number.
     * @param {Uint8Array | undefined} saved
     * @param {number[]} lora
     */
    openSession(saved, lora) {
        return this.#inTurn(async () => {
            await pause(); // So that sessions that nobody has any more are closed.
            this.#check();
            return this.#keep(await this.#model.session(saved, lora));
        });
    }

    /**
     * @param {number} number
     * @returns {any}
     */
    #session(number) {
        const session = this.#sessions.get(number);
        if (!session) {
            throw disposed('Session');
        }
        return session;
    }

    /** @param {Kept} session */
    #keep(session) {
        this.#sessions.set(++this.#numbers, session);
        return this.#numbers;
    }

    /**
     * Places a matrix of quantised weights on a device; returns its number, which is one of sessions, and the back-end.
     * `blocks` become the engine's.
     * @param {string} type
     * @param {Uint8Array} blocks
     * @param {number} rows
     * @param {number} cols
     * @param {string} choice
     * @returns {Promise<[number, string]>}
     */
    openMatrix(type, blocks, rows, cols, choice) {
        return this.#inTurn(async () => {
            const device = this.#devices.get(choice) ?? await Device.open(choice);
            this.#devices.set(choice, device);
            return [this.#keep(await device.add(type, blocks, rows, cols)), device.backend];
        });
    }

    /**
     * Calls a method of a session.
     * @param {number} number
     * @param {string} method
     * @param {any[]} values
     * @returns {Promise<any>}
     */
    session(number, method, values) {
        return this.#inTurn(async () => {
            const result = await this.#session(number)[method](...values);
            return method === 'fork' ? this.#keep(result) : result;
        });
    }

    /**
     * Frees a session once the calls before have ended; resolves then.
     * @param {number} number
     */
    closeSession(number) {
        return this.#inTurn(() => {
            this.#sessions.get(number)?.free();
            this.#sessions.delete(number);
        }).catch(() => {});
    }

    /**
     * `push` gets the new text.
     * @param {number} number
     * @param {AnswerRequest} request
     * @param {(piece: Piece) => void} push
     */
    generate(number, request, push) {
        return this.#inTurn(() => this.#generate(number, request, push));
    }

    /**
     * @param {number} number
     * @param {AnswerRequest} request
     * @param {(piece: Piece) => void} push
     */
    async #generate(number, { conversation, prompt, session, options }, push) {
        const began = performance.now();
        this.#check(number);
        const owner = session === undefined ? this.#model : this.#session(session);
        const generation = conversation ? owner.chat(conversation, options) : owner.complete(prompt, options);
        let times;
        try {
            const existing = generation.tokensAfter(0);
            let known = existing.length;
            push({ deltas: [], tokens: existing, logprobs: [], promptTokens: generation.promptTokens, resumed: known });
            let first;
            const isCancelled = () => this.#isCancelled(number);
            for (let text; (text = await generation.step(isCancelled)) !== undefined;) {
                const tokens = generation.tokensAfter(known);
                const now = performance.now();
                known += tokens.length;
                if (tokens.length > 0) {
                    first ??= now;
                }
                const logprobs = unpacked(generation.logprobsAfter(known - tokens.length), (id) => this.detokenize([id]));
                times = { promptTokens: generation.promptTokens, toFirst: first && first - began, sinceFirst: first && now - first };
                const deltas = divided(generation, text, generation.finishReason !== undefined);
                push({ deltas, tokens, logprobs, ...times });
                await pause();
                this.#check(number);
            }
            return generation.finishReason;
        } catch (error) {
            pushRest(generation, times, push);
            throw error;
        } finally {
            this.#cancelled.delete(number);
            generation.free();
            owner === this.#model || tellTokens(owner, push);
        }
    }

    /** @param {number} [number] */
    #check(number) {
        if (this.#disposed) {
            throw disposed();
        }
        if (this.#loss) {
            throw this.#loss;
        }
        if (number !== undefined && this.#cancelled.delete(number)) {
            throw aborted();
        }
    }

    /**
     * Whether running work must end. The work checks this between its slices.
     * @param {number} number
     */
    #isCancelled(number) {
        return this.#disposed || this.#cancelled.has(number);
    }

    /** @param {number} number */
    cancel(number) {
        this.#cancelled.add(number);
    }

    /** The size of the module's memory in bytes, which other models of this thread share. */
    memoryBytes() {
        return needed(this.#memory).buffer.byteLength;
    }

    /** Ends running calls, and frees everything afterwards: the module does not free memory that a call uses. */
    dispose() {
        this.#disposed = true;
        this.#turn.then(() => {
            [...this.#sessions.values(), ...this.#devices.values(), this.#loaded].forEach(release);
            this.#sessions.clear();
            this.#devices.clear();
            this.#loaded = undefined;
            return this.#free();
        });
    }
}
