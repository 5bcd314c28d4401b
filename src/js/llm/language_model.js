import { cachedModels, evict } from './cached_models.js';
import * as check from './check.js';
import { Engine } from './engine.js';
import { Generation } from './generation.js';
import { Lora } from './lora.js';
import { Session } from './session.js';
import { host } from './host.js';
import { kindOf } from './http.js';
import { compiled } from './module.js';
import { open, resolve, wholeFile } from './source.js';
import { split } from './stream.js';
import { WorkerEngine } from './worker_engine.js';
import { RelampagoError } from './error.js';

/** Pieces on their way to a worker: enough that it never waits. */
const MOST_PIECES = 8;

/** The most bytes of a piece. */
const PIECE = 4 << 20;

const DEVICES = ['auto', 'gpu', 'simd'];

const device = (value, what) => {
    if (!DEVICES.includes(value)) {
        throw check.invalid(what, value, "'auto', 'gpu' or 'simd'");
    }
    return value;
};

const LOAD = {
    cache: check.boolean,
    device,
    signal: check.abortSignal,
    onProgress: check.callable,
    contextLength: check.count,
    worker: check.boolean,
};

const GENERATE = {
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
    lora: (value) => value,
    seed: check.seed,
    stop: check.stops,
    signal: check.abortSignal,
};

const LORA = { alpha: check.number, signal: check.abortSignal };

const SESSION = { lora: (value) => value };

const POOLINGS = ['mean', 'last'];

const EMBED = {
    pooling: (value, what) => {
        if (!POOLINGS.includes(value)) {
            throw check.invalid(what, value, "'mean' or 'last'");
        }
        return value;
    },
    normalize: check.boolean,
};

const TOKENIZE = { special: check.boolean };

const randomSeed = () => crypto.getRandomValues(new Uint32Array(1))[0];

export class LanguageModel {
    #engine;
    #info;
    #generations = 0;
    #disposed = false;

    /** Use `LanguageModel.load`. */
    constructor(engine, info) {
        if (!(engine instanceof Engine || engine instanceof WorkerEngine)) {
            throw new RelampagoError('UNSUPPORTED', 'models are made by LanguageModel.load');
        }
        this.#engine = engine;
        this.#info = Object.freeze(info);
    }

    static async load(source, options) {
        const { cache = true, device, signal, onProgress, contextLength, worker = host.worker } = check.options(options, LOAD);
        const stop = () => {
            if (signal?.aborted) {
                throw check.aborted(signal);
            }
        };
        stop();
        const engine = worker ? new WorkerEngine() : new Engine();
        try {
            const origin = await fill(engine, source, { cache, signal, onProgress }, stop);
            const info = await engine.open({ contextLength, device });
            stop();
            return new LanguageModel(engine, { ...info, worker, ...origin });
        } catch (error) {
            engine.dispose();
            stop();
            throw error;
        }
    }

    /** Lists the models that are cached. */
    static async cached() {
        return cachedModels();
    }

    /** Removes a model from the cache. */
    static async evict(url) {
        return evict(resolve(url));
    }

    /** What the file says of the model, and where it runs. */
    get info() {
        return this.#info;
    }

    chat(messages, options) {
        return this.#generation({ messages: check.messages(messages) }, options);
    }

    complete(prompt, options) {
        return this.#generation({ prompt: check.text(prompt, 'prompt') }, options);
    }

    #generation(request, given) {
        const { signal, ...options } = check.options(given, GENERATE);
        options.seed ??= randomSeed();
        options.lora = this.#pairs(options.lora);
        // OpenAI's two options are one here.
        options.top_logprobs = options.logprobs ? options.top_logprobs ?? 0 : undefined;
        const number = ++this.#generations;
        const start = (push) => this.#used().generate(number, { ...request, options }, push);
        return new Generation(async (push) => start(push), () => this.#engine.cancel(number), signal);
    }

    #pairs(lora = []) {
        return Lora.pairs(lora, 'lora', this.#engine);
    }

    async loadLora(source, options) {
        const { alpha, signal } = check.options(options, LORA);
        const bytes = await wholeFile(source, signal);
        return new Lora(this.#engine, await this.#used().addLora(bytes, alpha));
    }

    async session(options) {
        const { lora } = check.options(options, SESSION);
        return new Session(this.#engine, await this.#used().openSession(undefined, this.#pairs(lora)));
    }

    async loadSession(saved, options) {
        const { lora } = check.options(options, SESSION);
        const bytes = check.bytes(saved, 'saved');
        return new Session(this.#engine, await this.#used().openSession(bytes, this.#pairs(lora)));
    }

    async embed(texts, options) {
        const { pooling, normalize = true } = check.options(options, EMBED);
        return this.#used().embed(check.texts(texts, 'texts'), pooling === 'last', normalize);
    }

    async tokenize(text, options) {
        const { special = false } = check.options(options, TOKENIZE);
        return this.#used().tokenize(check.text(text, 'text'), special);
    }

    async detokenize(tokens) {
        return this.#used().detokenize(check.tokens(tokens));
    }

    async memoryBytes() {
        return this.#used().memoryBytes();
    }

    #used() {
        if (this.#disposed) {
            throw check.disposed();
        }
        return this.#engine;
    }

    dispose() {
        if (!this.#disposed) {
            this.#disposed = true;
            this.#engine.dispose();
        }
    }

    static {
        if (Symbol.dispose) {
            this.prototype[Symbol.dispose] = this.prototype.dispose;
        }
    }
}

/** Moves a file to an engine, once more if it changes in between. Returns where it comes from. */
async function fill(engine, source, options, stop) {
    try {
        return await move(engine, source, options, stop);
    } catch (error) {
        if (kindOf(error) !== 'changed') {
            throw error;
        }
        return move(engine, source, options, stop);
    }
}

async function move(engine, source, options, stop) {
    const file = await open(source, options);
    try {
        await engine.start(await compiled(), file.size);
        await transfer(engine, file.pieces(), stop);
    } finally {
        await file.close();
    }
    const { source: from, cached } = file;
    return { source: from, cached };
}

async function transfer(engine, pieces, stop) {
    const underway = [];
    for await (const piece of split(pieces, PIECE)) {
        stop();
        const written = Promise.resolve(engine.write(piece));
        written.catch(() => {}); // It is awaited in its turn, or loading ends before.
        underway.push(written);
        if (underway.length === MOST_PIECES) {
            await underway.shift();
        }
    }
    await Promise.all(underway);
}
