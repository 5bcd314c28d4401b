import { ANSWER, answer, checkText, generated } from './answer.js';
import { cachedModels, evict } from './cached_models.js';
import * as check from './check.js';
import { Engine } from './engine.js';
import { examplesOf } from './examples.js';
import { inspect } from './inspection.js';
import { Lora } from './lora.js';
import { Session } from './session.js';
import { host } from './host.js';
import { linked } from './linked.js';
import { start } from './loading.js';
import { partsOf, resolve, wholeFile } from './source.js';
import { TUNE, learned } from './tuning.js';
import { TunedLora } from './tuned_lora.js';
import { DISPOSE } from '../common/dispose.js';
import { traceAll } from '../common/stack.js';
import { untilAborted } from '../common/until_aborted.js';
import { WorkerEngine } from './worker_engine.js';
import { RelampagoError } from '../common/error.js';

/**
 * @import { AnyEngine, Current, Piece } from './engines.js'
 * @import { Chosen } from './lora.js'
 *
 * @typedef {{ engine: AnyEngine, info: any }} Started an engine that has a model, and the model's `info`
 */

const LOAD = {
    cache: check.boolean,
    device: check.oneOf('auto', 'gpu', 'simd'),
    signal: check.abortSignal,
    onProgress: check.callable,
    contextLength: check.count,
    cacheType: check.oneOf('f16', 'f32', 'q8_0'),
    worker: check.boolean,
    threads: check.threads,
};

const INSPECT = {
    contextLength: LOAD.contextLength,
    cacheType: LOAD.cacheType,
    signal: check.abortSignal,
    worker: check.boolean,
};

/** @type {Record<string, check.Check>} */
const GENERATE = { ...ANSWER, lora: (value) => value };

const LORA = { alpha: check.number, signal: check.abortSignal };

/** @type {Record<string, check.Check>} */
const SESSION = { lora: (value) => value };

const EMBED = {
    pooling: check.oneOf('mean', 'last', 'cls'),
    normalize: check.boolean,
    prompt: check.text,
    dimensions: check.count,
    truncate: check.boolean,
    signal: check.abortSignal,
};

const RANK = { truncate: check.boolean, signal: check.abortSignal };

const TOKENIZE = { special: check.boolean };

const RELOAD = { signal: check.abortSignal, onProgress: check.callable };

/**
 * Returns options that say where a model runs: several threads need a worker that leads them.
 * @param {any} options
 * @returns {any}
 */
const placed = (options) => ({ worker: host.worker || (options.threads ?? 1) !== 1, ...options });

/**
 * Whether a source can be read again without keeping bytes of the caller's.
 * @param {any} source
 * @returns {boolean}
 */
const isLasting = (source) => Array.isArray(source)
    ? source.every(isLasting)
    : typeof source === 'string' || !(source instanceof ArrayBuffer || ArrayBuffer.isView(source));

/** @param {any} source */
function requireSource(source) {
    if (source === undefined) {
        throw check.invalid('source', source, 'given again: the bytes that the model was loaded from are not kept');
    }
}

export class LanguageModel {
    /**
     * The engine, which a reload replaces; sessions and adapters look for it here. `requests` is the number of the last
     * answer, or of texts to embed, by which engines cancel them.
     * @type {Current}
     */
    #current;
    #info;
    #source;
    #options;
    /** @type {Set<Lora>} */
    #loras = new Set();
    /** @type {Set<WeakRef<Session>>} */
    #sessions = new Set();
    /**
     * Controllers of adapters that are being learned.
     * @type {Set<AbortController>}
     */
    #tunings = new Set();
    #disposed = false;
    /**
     * The running reload: its source, and a promise of whether it succeeded.
     * @type {{ source: any, ended: Promise<boolean> } | undefined}
     */
    #reloading;

    /**
     * Use `LanguageModel.load`.
     * @param {Started} started
     * @param {any} source
     * @param {any} options
     */
    constructor(started, source, options) {
        const { engine, info } = Object(started);
        if (!(engine instanceof Engine || engine instanceof WorkerEngine)) {
            throw new RelampagoError('UNSUPPORTED', 'models are made by LanguageModel.load');
        }
        this.#current = { engine, requests: 0 };
        this.#info = info;
        this.#source = isLasting(source) ? source : undefined;
        this.#options = options;
    }

    /**
     * @param {any} source
     * @param {any} [options]
     */
    static async load(source, options) {
        const { signal, onProgress, ...lasting } = { cache: true, ...placed(check.options(options, LOAD)) };
        return new LanguageModel(await start(source, { ...lasting, signal, onProgress }), source, lasting);
    }

    /**
     * Reads the description of a model from its files, without their weights.
     * @param {any} source
     * @param {any} [options]
     */
    static async inspect(source, options) {
        return inspect(partsOf(source), { worker: host.worker, ...check.options(options, INSPECT) });
    }

    /**
     * Loads the model anew, with its adapters and sessions.
     * @param {any} [source]
     * @param {any} [options]
     */
    async reload(source = this.#source, options) {
        const { signal, onProgress } = check.options(options, RELOAD);
        this.#used();
        requireSource(source);
        while (this.#reloading) {
            const { source: same, ended } = this.#reloading;
            if ((await untilAborted(signal, () => ended, check.aborted)) && same === source) {
                return;
            }
            this.#used();
        }
        const renewed = this.#renew(source, { signal, onProgress });
        const ended = renewed.then(() => true, () => false).finally(() => (this.#reloading = undefined));
        this.#reloading = { source, ended };
        await ended;
        await renewed;
    }

    /**
     * Loads the model anew, in place of the engine once the source is open.
     * @param {any} source
     * @param {any} options
     */
    async #renew(source, options) {
        const onOpen = () => this.#current.engine.dispose();
        const { engine, info } = await start(source, { ...this.#options, ...options, onOpen });
        /** @type {unknown[]} */
        const faults = [];
        const renew = async (/** @type {(Lora | Session | undefined)[]} */ all) => {
            for (const one of all) {
                await one?.renew(engine).catch((error) => faults.push(error));
            }
        };
        // Numbers of adapters are those of the engine that answers.
        await renew([...this.#loras]);
        if (this.#disposed) {
            engine.dispose();
            this.#used();
        }
        this.#current.engine = engine;
        this.#info = info;
        await renew([...this.#sessions].map((reference) => reference.deref()));
        if (faults.length > 0) {
            throw faults[0];
        }
    }

    /** Lists the models that are cached. */
    static async cached() {
        return cachedModels();
    }

    /**
     * Removes a model from the cache.
     * @param {any} url
     */
    static async evict(url) {
        const removed = await Promise.all(partsOf(url).map((part) => evict(resolve(part))));
        return removed.includes(true);
    }

    /** The description of the model in its file, and the back-end that runs it. */
    get info() {
        return this.#info;
    }

    /**
     * @param {any} messages
     * @param {any} [options]
     */
    chat(messages, options) {
        return this.#generation({ messages: check.messages(messages) }, options);
    }

    /**
     * @param {any} prompt
     * @param {any} [options]
     */
    complete(prompt, options) {
        return this.#generation({ prompt: check.text(prompt, 'prompt') }, options);
    }

    /**
     * @param {{ messages?: any, prompt?: string }} request
     * @param {any} given
     */
    #generation(request, given) {
        const options = check.options(given, GENERATE);
        request.messages || checkText(options);
        // Logits of a prompt that is read in other pieces are rounded in another way.
        options.fresh = options.seed !== undefined && options.after === undefined;
        const chosen = this.#chosen(options.lora);
        const generate = async (/** @type {number} */ number, /** @type {any} */ checked, /** @type {(piece: Piece) => void} */ push) => {
            // A reload gives adapters other numbers.
            const asked = { ...request, options: { ...checked, lora: Lora.pairs(chosen) } };
            return generated(this.#used(), number, asked, push);
        };
        return answer(this.#current, options, generate, () => Lora.keep(chosen));
    }

    /** @param {any} [lora] */
    #chosen(lora = []) {
        return Lora.chosen(lora, 'lora', this.#current);
    }

    /**
     * @param {any} source
     * @param {any} [options]
     */
    async loadLora(source, options) {
        const { alpha, signal } = check.options(options, LORA);
        this.#used();
        const lora = new Lora(this.#current, await wholeFile(source, signal), alpha, this.#loras);
        await lora.renew(this.#used());
        if (signal?.aborted) {
            lora.dispose();
            throw check.aborted(signal);
        }
        return lora;
    }

    /**
     * @param {any} examples
     * @param {any} [given]
     */
    async tune(examples, given) {
        const { source = this.#source, signal, threads = this.#options.threads, ...options } = check.options(given, TUNE);
        const list = examplesOf(examples);
        this.#used();
        requireSource(source);
        const { controller, unlink } = linked(signal);
        this.#tunings.add(controller);
        try {
            const found = await learned(source, { ...this.#options, threads }, list, { ...options, signal: controller.signal });
            const lora = new TunedLora(this.#current, found, this.#loras);
            await lora.renew(this.#used());
            return lora;
        } catch (error) {
            this.#used();
            throw error;
        } finally {
            unlink();
            this.#tunings.delete(controller);
        }
    }

    /** @param {any} [options] */
    async session(options) {
        const { lora } = check.options(options, SESSION);
        return this.#session(undefined, lora);
    }

    /**
     * @param {any} saved
     * @param {any} [options]
     */
    async loadSession(saved, options) {
        const { lora } = check.options(options, SESSION);
        const bytes = check.bytes(saved, 'saved');
        return this.#session(bytes, lora);
    }

    /**
     * @param {Uint8Array | undefined} saved
     * @param {any} [lora]
     */
    #session(saved, lora = []) {
        this.#used();
        const chosen = this.#chosen(lora);
        return Session.open(this.#current, this.#sessions, chosen, (engine) => engine.openSession(saved, Lora.pairs(chosen)));
    }

    /**
     * @param {any} texts
     * @param {any} [options]
     */
    async embed(texts, options) {
        const { signal, ...how } = check.options(options, EMBED);
        const list = check.texts(texts, 'texts');
        const [engine, number] = [this.#used(), ++this.#current.requests];
        const embed = () => engine.embed(number, list, how);
        return untilAborted(signal, embed, check.aborted, () => engine.cancel(number));
    }

    /**
     * @param {any} query
     * @param {any} texts
     * @param {any} [options]
     */
    async rank(query, texts, options) {
        const { signal, ...how } = check.options(options, RANK);
        const question = check.text(query, 'query');
        const list = check.texts(texts, 'texts');
        const [engine, number] = [this.#used(), ++this.#current.requests];
        const rank = () => engine.rank(number, question, list, how);
        return untilAborted(signal, rank, check.aborted, () => engine.cancel(number));
    }

    /**
     * @param {any} text
     * @param {any} [options]
     */
    async tokenize(text, options) {
        const { special = false } = check.options(options, TOKENIZE);
        return this.#used().tokenize(check.text(text, 'text'), special);
    }

    /** @param {any} tokens */
    async detokenize(tokens) {
        const { vocabulary } = this.info;
        const list = check.tokens(tokens);
        const beyond = list.find((token) => token >= vocabulary);
        if (beyond !== undefined) {
            throw check.invalid('tokens', beyond, `token ids below ${vocabulary}`);
        }
        return this.#used().detokenize(list);
    }

    async explain() {
        return this.#used().explain();
    }

    async memoryBytes() {
        return this.#used().memoryBytes();
    }

    #used() {
        if (this.#disposed) {
            throw check.disposed();
        }
        return this.#current.engine;
    }

    dispose() {
        if (!this.#disposed) {
            this.#disposed = true;
            this.#tunings.forEach((controller) => controller.abort());
            this.#current.engine.dispose();
        }
    }

    /** For `using`. */
    [DISPOSE]() {
        this.dispose();
    }

    static {
        traceAll(this, ['load', 'inspect', 'cached', 'evict']);
        traceAll(this.prototype, [
            'reload', 'loadLora', 'tune', 'session', 'loadSession', 'embed', 'rank', 'tokenize', 'detokenize', 'explain',
            'memoryBytes',
        ]);
    }
}
