// An engine in a worker, with the methods of `Engine` as promises.

import { disposed } from './check.js';
import { host } from './host.js';
import { RelampagoError } from '../common/error.js';

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

export class WorkerEngine {
    /** The number of pieces that are sent to the worker in advance, so that it never waits. */
    mostPieces = 8;
    /** The threads of a model on SIMD. */
    threads = 1;
    /** The first one leads. */
    #workers = [];
    /** What workers share: `{ count, module, memory }`; undefined if there is one worker. */
    #shared;
    #spawnSharing;
    #waiting = new Map();
    #calls = 0;
    #answered = false;
    #loss;
    /** Buffers for pieces of a file. */
    #spares = [];

    /** With `shared`, models on SIMD run in `count` workers that share a memory. With `isTuning`, workers can tune. */
    constructor(shared, isTuning) {
        this.#shared = shared;
        this.#spawnSharing = isTuning ? spawnTuningSharing : spawnSharing;
        try {
            this.#add(shared ? this.#spawnSharing : isTuning ? spawnTuning : spawn);
        } catch (error) {
            throw unsupported(error.message);
        }
    }

    /** Whether it has a module of its own. */
    get isSharing() {
        return this.#shared !== undefined;
    }

    #add(spawn) {
        const worker = spawn();
        this.#workers.push(worker);
        worker.onmessage = ({ data }) => this.#settle(...data);
        worker.onerror = worker.onmessageerror = (event) => {
            event.preventDefault();
            this.#lose(event.message ?? 'the script of a worker, or a message from it, cannot be read');
        };
        return worker;
    }

    #call(method, values, options) {
        return this.#ask(this.#workers[0], method, values, options);
    }

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

    /** Has other workers take parts of the first one's work. */
    async #gather({ count, module, memory }) {
        const others = Array.from({ length: count - 1 }, () => this.#add(this.#spawnSharing));
        await Promise.all(this.#workers.map((worker) => this.#ask(worker, 'share', [module, memory])));
        await Promise.all(others.map((worker) => this.#ask(worker, 'follow', [])));
        await this.#call('lead', [count]);
        this.threads = count;
    }

    #settle(call, value, error, piece) {
        this.#answered = true;
        const waiting = this.#waiting.get(call);
        if (piece) {
            return waiting?.push(piece);
        }
        this.#waiting.delete(call);
        if (error && !error.code) {
            return this.#lose(error.message, waiting);
        }
        error ? waiting?.reject(new RelampagoError(error.code, error.message)) : waiting?.resolve(value);
    }

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

    /** Starts with the module, or with the one that workers share. */
    async start(module, size, options) {
        const shared = this.#shared;
        // Before anything computes: the module has its threads from then on.
        shared && this.threads === 1 && await this.#gather(shared);
        return this.#call('start', [shared?.module ?? module, size, options]);
    }

    startChat(module) {
        return this.#call('startChat', [module]);
    }

    addPart(size) {
        return this.#call('addPart', [size]);
    }

    hasHead(size) {
        return this.#call('hasHead', [size]);
    }

    inspect(sizes, options) {
        return this.#call('inspect', [sizes, options]);
    }

    /**
     * A copy of the piece goes to the worker, so that the caller's bytes stay. Its buffer comes back for another piece: the
     * collector may leave buffers of their own, as many bytes as the file has, until long after.
     */
    async write(piece) {
        const spare = this.#spares.pop();
        const buffer = spare?.byteLength >= piece.length ? spare : new ArrayBuffer(piece.length);
        const own = new Uint8Array(buffer, 0, piece.length);
        own.set(piece);
        this.#spares.push(await this.#call('write', [own], { transfer: [buffer] }));
    }

    finish() {
        return this.#call('finish', []);
    }

    open(options) {
        this.#spares = [];
        return this.#call('open', [options]);
    }

    tokenize(text, special) {
        return this.#call('tokenize', [text, special]);
    }

    detokenize(tokens) {
        return this.#call('detokenize', [tokens]);
    }

    explain() {
        return this.#call('explain', []);
    }

    generate(number, request, push) {
        return this.#call('generate', [number, request], { push });
    }

    tune(number, examples, options, push) {
        return this.#call('tune', [number, examples, options], { push });
    }

    addLora(bytes, alpha) {
        return this.#call('addLora', [bytes, alpha]);
    }

    removeLora(number) {
        this.#call('removeLora', [number]).catch(() => {});
    }

    embed(...values) {
        return this.#call('embed', values);
    }

    rank(...values) {
        return this.#call('rank', values);
    }

    openSession(saved, lora) {
        return this.#call('openSession', [saved, lora], { transfer: saved && [saved.buffer] });
    }

    openMatrix(type, blocks, rows, cols, choice) {
        return this.#call('openMatrix', [type, blocks, rows, cols, choice], { transfer: [blocks.buffer] });
    }

    session(number, method, values) {
        return this.#call('session', [number, method, values]);
    }

    closeSession(number) {
        return this.#call('closeSession', [number]).catch(() => {});
    }

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
