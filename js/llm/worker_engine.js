// An engine in a worker, with the methods of `Engine` as promises.

import { disposed } from './check.js';
import { host } from './host.js';
import { RelampagoError } from '../common/error.js';

/**
 * @import { AnswerRequest, AnyEngine, Piece } from './engines.js'
 * @import { AnyWorker } from './host.js'
 * @import { Shared } from './loading.js'
 *
 * @typedef {{ resolve: (value: any) => void, reject: (error: unknown) => void, push?: (piece: any) => void }} Waiting
 * @typedef {{ push?: (piece: any) => void, transfer?: any[] }} CallOptions
 */

/** @param {string} reason */
const unsupported = (reason) => new RelampagoError('UNSUPPORTED', `no worker could be started: ${reason}; \`worker: false\` does without`);

// Bundlers look for the expressions that make workers of browsers.
const spawn = () => host.startWorker?.('./llm_worker.js')
    ?? new Worker(new URL('./llm_worker.js', import.meta.url), { type: 'module' });
const spawnSharing = () => host.startWorker?.('./llm_threads.js')
    ?? new Worker(new URL('./llm_threads.js', import.meta.url), { type: 'module' });
const spawnTuning = () => host.startWorker?.('./tune_worker.js')
    ?? new Worker(new URL('./tune_worker.js', import.meta.url), { type: 'module' });
const spawnTuningSharing = () => host.startWorker?.('./tune_threads.js')
    ?? new Worker(new URL('./tune_threads.js', import.meta.url), { type: 'module' });

/** @implements {AnyEngine} */
export class WorkerEngine {
    /** The number of pieces that are sent to the worker in advance, so that it never waits. */
    mostPieces = 8;
    /** The threads of a model on SIMD. */
    threads = 1;
    /**
     * The first one leads.
     * @type {AnyWorker[]}
     */
    #workers = [];
    /** The module and memory that workers share; undefined if there is one worker. */
    #shared;
    #spawnSharing;
    /** @type {Map<number, Waiting>} */
    #waiting = new Map();
    #calls = 0;
    #answered = false;
    /** @type {RelampagoError | undefined} */
    #loss;
    /**
     * Buffers for pieces of a file.
     * @type {ArrayBuffer[]}
     */
    #spares = [];

    /**
     * With `shared`, models on SIMD run in `count` workers that share a memory. With `isTuning`, workers can tune.
     * @param {Shared} [shared]
     * @param {boolean} [isTuning]
     */
    constructor(shared, isTuning) {
        this.#shared = shared;
        this.#spawnSharing = isTuning ? spawnTuningSharing : spawnSharing;
        try {
            this.#add(shared ? this.#spawnSharing : isTuning ? spawnTuning : spawn);
        } catch (/** @type {any} */ error) {
            throw unsupported(error.message);
        }
    }

    /** Whether it has a module of its own. */
    get isSharing() {
        return this.#shared !== undefined;
    }

    /** @param {() => AnyWorker} spawn */
    #add(spawn) {
        const worker = spawn();
        this.#workers.push(worker);
        worker.onmessage = (/** @type {{ data: any }} */ { data: [call, value, error, piece] }) => this.#settle(call, value, error, piece);
        worker.onerror = worker.onmessageerror = (/** @type {ErrorEvent} */ event) => {
            event.preventDefault();
            this.#lose(event.message ?? 'the script of a worker, or a message from it, cannot be read');
        };
        return worker;
    }

    /**
     * @param {string} method
     * @param {any[]} values
     * @param {CallOptions} [options]
     * @returns {Promise<any>}
     */
    #call(method, values, options) {
        return this.#ask(this.#workers[0], method, values, options);
    }

    /**
     * @param {AnyWorker} worker
     * @param {string} method
     * @param {any[]} values
     * @param {CallOptions} options
     * @returns {Promise<any>}
     */
    #ask(worker, method, values, { push, transfer = [] } = {}) {
        return new Promise((resolve, reject) => {
            if (this.#loss) {
                throw this.#loss;
            }
            const call = ++this.#calls;
            worker.postMessage([call, method, ...values], transfer);
            this.#waiting.set(call, { resolve, reject, push });
        });
    }

    /**
     * Has other workers take parts of the first one's work.
     * @param {Shared} shared
     */
    async #gather({ count, module, memory }) {
        const others = Array.from({ length: count - 1 }, () => this.#add(this.#spawnSharing));
        await Promise.all(this.#workers.map((worker) => this.#ask(worker, 'share', [module, memory])));
        await Promise.all(others.map((worker) => this.#ask(worker, 'follow', [])));
        await this.#call('lead', [count]);
        this.threads = count;
    }

    /**
     * @param {number} call
     * @param {any} value
     * @param {any} error
     * @param {any} piece
     */
    #settle(call, value, error, piece) {
        this.#answered = true;
        const waiting = this.#waiting.get(call);
        if (piece) {
            return waiting?.push?.(piece);
        }
        this.#waiting.delete(call);
        if (error && !error.code) {
            return this.#lose(error.message, waiting);
        }
        error ? waiting?.reject(new RelampagoError(error.code, error.message)) : waiting?.resolve(value);
    }

    /**
     * @param {string} reason
     * @param {Waiting} [waiting]
     */
    #lose(reason, waiting) {
        this.#loss ??= this.#answered
            ? new RelampagoError('DEVICE_LOST', `the model's worker failed, reload the model: ${reason}`)
            : unsupported(reason);
        waiting?.reject(this.#loss);
        this.#end();
    }

    #end() {
        this.#waiting.forEach(({ reject }) => reject(this.#loss));
        this.#waiting.clear();
        this.#workers.forEach((worker) => worker.terminate());
    }

    /**
     * Starts with the module, or with the one that workers share.
     * @param {WebAssembly.Module | undefined} module
     * @param {number} size
     * @param {any} [options]
     * @returns {Promise<boolean>}
     */
    async start(module, size, options) {
        const shared = this.#shared;
        // Before anything computes: the module has its threads from then on.
        shared && this.threads === 1 && await this.#gather(shared);
        return this.#call('start', [shared?.module ?? module, size, options]);
    }

    /** @param {WebAssembly.Module} module */
    startChat(module) {
        return this.#call('startChat', [module]);
    }

    /** @param {number} size */
    addPart(size) {
        return this.#call('addPart', [size]);
    }

    /** @param {number} size */
    hasHead(size) {
        return this.#call('hasHead', [size]);
    }

    /**
     * @param {number[]} sizes
     * @param {any} options
     */
    inspect(sizes, options) {
        return this.#call('inspect', [sizes, options]);
    }

    /**
     * A copy of the piece goes to the worker, so that the caller's bytes stay. Its buffer comes back for another piece: the
     * collector may leave buffers of their own, as many bytes as the file has, until long after.
     * @param {Uint8Array} piece
     */
    async write(piece) {
        const spare = this.#spares.pop();
        const buffer = spare && spare.byteLength >= piece.length ? spare : new ArrayBuffer(piece.length);
        const own = new Uint8Array(buffer, 0, piece.length);
        own.set(piece);
        this.#spares.push(await this.#call('write', [own], { transfer: [buffer] }));
    }

    finish() {
        return this.#call('finish', []);
    }

    /** @param {any} options */
    open(options) {
        this.#spares = [];
        return this.#call('open', [options]);
    }

    /**
     * @param {string} text
     * @param {boolean} special
     */
    tokenize(text, special) {
        return this.#call('tokenize', [text, special]);
    }

    /** @param {ArrayLike<number>} tokens */
    detokenize(tokens) {
        return this.#call('detokenize', [tokens]);
    }

    explain() {
        return this.#call('explain', []);
    }

    /**
     * @param {number} number
     * @param {AnswerRequest} request
     * @param {(piece: Piece) => void} push
     */
    generate(number, request, push) {
        return this.#call('generate', [number, request], { push });
    }

    /**
     * @param {number} number
     * @param {string[]} examples
     * @param {any} options
     * @param {(progress: any) => void} push
     */
    tune(number, examples, options, push) {
        return this.#call('tune', [number, examples, options], { push });
    }

    /**
     * @param {Uint8Array} bytes
     * @param {number | undefined} alpha
     */
    addLora(bytes, alpha) {
        return this.#call('addLora', [bytes, alpha]);
    }

    /** @param {number} number */
    removeLora(number) {
        this.#call('removeLora', [number]).catch(() => {});
    }

    /**
     * @param {number} number
     * @param {string[]} texts
     * @param {any} options
     */
    embed(number, texts, options) {
        return this.#call('embed', [number, texts, options]);
    }

    /**
     * @param {number} number
     * @param {string} query
     * @param {string[]} texts
     * @param {any} options
     */
    rank(number, query, texts, options) {
        return this.#call('rank', [number, query, texts, options]);
    }

    /**
     * @param {Uint8Array | undefined} saved
     * @param {number[]} lora
     */
    openSession(saved, lora) {
        return this.#call('openSession', [saved, lora], { transfer: saved && [saved.buffer] });
    }

    /**
     * @param {string} type
     * @param {Uint8Array} blocks
     * @param {number} rows
     * @param {number} cols
     * @param {string} choice
     */
    openMatrix(type, blocks, rows, cols, choice) {
        return this.#call('openMatrix', [type, blocks, rows, cols, choice], { transfer: [blocks.buffer] });
    }

    /**
     * @param {number} number
     * @param {string} method
     * @param {any[]} values
     */
    session(number, method, values) {
        return this.#call('session', [number, method, values]);
    }

    /** @param {number} number */
    closeSession(number) {
        return this.#call('closeSession', [number]).catch(() => {});
    }

    /** @param {number} number */
    cancel(number) {
        this.#call('cancel', [number]).catch(() => {});
    }

    memoryBytes() {
        return this.#call('memoryBytes', []);
    }

    dispose() {
        this.#loss ??= disposed();
        this.#end();
    }
}
