// From a source to an engine that has the model.

import { foresee, startChat } from './chat.js';
import * as check from './check.js';
import { Engine } from './engine.js';
import { host } from './host.js';
import { kindOf } from './http.js';
import { coreCount, obstacle, reasonForOne, sharedMemory } from '../common/shared_memory.js';
import { compiled, compiledShared, compiledTune, compiledTuneShared } from './module.js';
import { open, partsOf } from './source.js';
import { PIECE, split } from './stream.js';
import { WorkerEngine } from './worker_engine.js';

/**
 * @import { AnyEngine } from './engines.js'
 * @import { OnProgress } from './source.js'
 *
 * @typedef {{ count: number, module: WebAssembly.Module, memory: WebAssembly.Memory }} Shared what workers share
 * @typedef {{
 *     cache?: boolean, signal?: AbortSignal, onProgress?: OnProgress, onOpen?: () => void, options: any, arriving?: any,
 *     isTuning?: boolean,
 * }} Moving
 * @typedef {{ isOnGpu: boolean }} State whether matrices go to a GPU as they arrive
 * @typedef {() => void} Stop a function that throws where the caller has aborted
 */

/** The bytes at the beginning of a file that most metadata are in. */
const HEAD = 8 * PIECE;

/**
 * Loads a model; returns its engine and its `info`. `onOpen` is called once the first file is open. With `isTuning` workers
 * have the module that tunes.
 * @param {any} source
 * @param {any} options
 */
export async function start(source, options) {
    const { cache, device = 'auto', signal, onProgress, onOpen, contextLength, cacheType, worker, threads, isTuning } = options;
    const stop = () => check.unaborted(signal);
    stop();
    const { shared, alone } = await sharing(worker, threads, device, isTuning);
    /** @type {AnyEngine} */
    const engine = worker ? new WorkerEngine(shared, isTuning) : new Engine();
    try {
        const options = { contextLength, cacheType, device };
        const info = await load(engine, partsOf(source), { cache, signal, onProgress, onOpen, isTuning, options }, stop);
        stop();
        return { engine, info: Object.freeze({ ...info, worker, ...threadsOf(engine, info, alone) }) };
    } catch (error) {
        engine.dispose();
        stop();
        throw error;
    }
}

/**
 * Whether a model is going to be on a GPU. Software adapters do not count, as for `auto`.
 * @param {string} device
 */
const isForGpu = async (device) => {
    if (device !== 'auto') {
        return device === 'gpu';
    }
    const adapter = await globalThis.navigator?.gpu?.requestAdapter().catch(() => undefined);
    return adapter ? !adapter.info?.isFallbackAdapter : false;
};

/**
 * Returns what workers of a model share, or else why it has one thread.
 * @param {boolean} worker
 * @param {any} threads
 * @param {string} device
 * @param {boolean} [isTuning] whether they have the module that tunes
 * @returns {Promise<{ shared?: Shared, alone?: string }>}
 */
async function sharing(worker, threads = worker ? 'auto' : 1, device, isTuning) {
    const count = threads === 'auto' ? coreCount(host.threads) : threads;
    const alone = count === 1 ? reasonForOne(threads) : worker ? obstacle() : 'the model runs in the calling thread';
    if (alone) {
        return { alone };
    }
    if (await isForGpu(device)) {
        return { alone: 'a GPU computes' };
    }
    try {
        return { shared: { count, module: await (isTuning ? compiledTuneShared() : compiledShared()), memory: sharedMemory() } };
    } catch (/** @type {any} */ error) {
        if (threads !== 'auto') {
            throw error;
        }
        return { alone: error.message };
    }
}

/**
 * Returns how many threads a model has, and why if it has one.
 * @param {AnyEngine} engine
 * @param {{ backend: string }} info
 * @param {string | undefined} alone
 */
const threadsOf = ({ threads = 1 }, { backend }, alone) => {
    const used = backend === 'gpu' ? 1 : threads;
    const threadsReason = used > 1 ? undefined : backend === 'gpu' ? 'a GPU computes' : alone;
    return { threads: used, ...(threadsReason && { threadsReason }) };
};

/** The errors of a GPU that cannot hold a model, for which `auto` tries SIMD. */
const REFUSALS = ['DEVICE_LOST', 'GPU', 'LIMIT_EXCEEDED', 'OUT_OF_MEMORY'];

/**
 * Loads a model: once more if its file changes meanwhile, and on SIMD if the GPU that was found refuses it.
 * @param {AnyEngine} engine
 * @param {any[]} sources
 * @param {Moving} moving
 * @param {Stop} stop
 * @returns {Promise<any>}
 */
async function load(engine, sources, moving, stop) {
    const state = { isOnGpu: false };
    for (let changes = 0; ; changes++) {
        try {
            return await attempt(engine, sources, moving, state, stop);
        } catch (/** @type {any} */ error) {
            if (state.isOnGpu && moving.options.device === 'auto' && REFUSALS.includes(error.code)) {
                return onSimd(engine, sources, moving, error, stop);
            }
            if (changes > 0 || kindOf(error) !== 'changed') {
                throw error;
            }
        }
    }
}

/**
 * Loads a model on SIMD after the error of a GPU, which is the error of a module without room for the whole file, too.
 * @param {AnyEngine} engine
 * @param {any[]} sources
 * @param {Moving} moving
 * @param {Error} refusal
 * @param {Stop} stop
 */
async function onSimd(engine, sources, moving, refusal, stop) {
    try {
        const options = { ...moving.options, device: 'simd' };
        const info = await load(engine, sources, { ...moving, options }, stop);
        return { ...info, reason: `the GPU cannot run this model: ${refusal.message}` };
    } catch (/** @type {any} */ error) {
        throw error.code === 'OUT_OF_MEMORY' ? refusal : error;
    }
}

/**
 * Loads a model; notes in `state` whether its matrices go to a GPU as they arrive. Returns the fields of `info`.
 * @param {AnyEngine} engine
 * @param {any[]} sources
 * @param {Moving} moving
 * @param {State} state
 * @param {Stop} stop
 */
async function attempt(engine, sources, moving, state, stop) {
    const { options, isTuning } = moving;
    // A model that is split has to be whole, and so has one that is tuned.
    const arriving = sources.length === 1 && options.device !== 'simd' && !isTuning ? options : undefined;
    const origin = await move(engine, sources, { ...moving, arriving }, state, stop);
    if (await engine.finish()) {
        await startChat(engine);
    }
    return { ...(await engine.open(options)), ...origin };
}

/**
 * @param {AnyEngine} engine
 * @param {any[]} sources
 * @param {Moving} options
 * @param {State} state
 * @param {Stop} stop
 */
async function move(engine, sources, options, state, stop) {
    /** @type {{ source: string, cached: boolean }[]} */
    const origins = [];
    let before = 0;
    for (const [index, part] of sources.entries()) {
        const isLast = index + 1 === sources.length;
        /** @type {OnProgress | undefined} */
        const onProgress = options.onProgress && (({ loaded, total }) => options.onProgress?.({
            loaded: before + loaded,
            // The sizes of the parts to come are not known.
            total: isLast && total !== undefined ? before + total : undefined,
        }));
        const { file, bytes } = await movePart(engine, part, { ...options, onProgress }, index === 0 ? state : undefined, stop);
        origins.push(file);
        before += bytes;
    }
    return joined(origins);
}

/**
 * Moves a file: the first one with `state`. Returns it and the number of its bytes.
 * @param {AnyEngine} engine
 * @param {any} source
 * @param {Moving} options
 * @param {State | undefined} state
 * @param {Stop} stop
 */
async function movePart(engine, source, options, state, stop) {
    const file = await open(source, options);
    try {
        if (state) {
            stop();
            options.onOpen?.();
            const module = engine.isSharing ? undefined : await (options.isTuning ? compiledTune() : compiled());
            state.isOnGpu = await engine.start(module, file.size, options.arriving);
        } else {
            await engine.addPart(file.size);
        }
        return { file, bytes: await transfer(engine, file.pieces(), stop) };
    } finally {
        await file.close();
    }
}

/**
 * The source of all parts: the network if any part comes from it.
 * @param {{ source: string, cached: boolean }[]} origins
 */
function joined(origins) {
    const all = origins.map(({ source }) => source);
    const source = ['network', 'cache', 'local'].find((each) => all.includes(each));
    return { source, cached: origins.every(({ cached }) => cached) };
}

/**
 * Moves the pieces of a file; returns the number of its bytes.
 * @param {AnyEngine} engine
 * @param {AsyncIterable<Uint8Array<ArrayBuffer>>} pieces
 * @param {Stop} stop
 */
async function transfer(engine, pieces, stop) {
    /** @type {Promise<void>[]} */
    const underway = [];
    let bytes = 0;
    let isForeseen = false;
    for await (const piece of split(pieces, PIECE)) {
        stop();
        isForeseen ||= bytes < HEAD && foresee(piece);
        bytes += piece.length;
        const written = Promise.resolve(engine.write(piece));
        written.catch(() => {}); // It is awaited in its turn, or loading ends before.
        underway.push(written);
        if (underway.length === engine.mostPieces) {
            await underway.shift();
        }
    }
    await Promise.all(underway);
    return bytes;
}
