// From a source to an engine that has the model.

import { foresee, startChat } from './chat.js';
import * as check from './check.js';
import { Engine } from './engine.js';
import { kindOf } from './http.js';
import { compiled } from './module.js';
import { open, partsOf } from './source.js';
import { PIECE, split } from './stream.js';
import { WorkerEngine } from './worker_engine.js';

/** The bytes at the beginning of a file that most metadata are in. */
const HEAD = 8 * PIECE;

/** Pieces on their way to a worker: enough that it never waits. */
const MOST_PIECES = 8;

/** Loads a model; returns its engine and its `info`. */
export async function start(source, { cache, device = 'auto', signal, onProgress, contextLength, cacheType, worker }) {
    const stop = () => {
        if (signal?.aborted) {
            throw check.aborted(signal);
        }
    };
    stop();
    const engine = worker ? new WorkerEngine() : new Engine();
    try {
        const options = { contextLength, cacheType, device };
        const origin = await fill(engine, source, { cache, signal, onProgress, options }, stop);
        const hasChatTemplate = await engine.finish();
        if (hasChatTemplate) {
            await startChat(engine);
        }
        const info = await engine.open(options);
        stop();
        return { engine, info: Object.freeze({ ...info, worker, ...origin }) };
    } catch (error) {
        engine.dispose();
        stop();
        throw error;
    }
}

/** The errors of a GPU that cannot hold a model, for which `auto` tries SIMD. */
const REFUSALS = ['DEVICE_LOST', 'GPU', 'LIMIT_EXCEEDED', 'OUT_OF_MEMORY'];

/**
 * Moves a file to an engine, once more if it changes in between, or if a GPU that was found cannot hold its matrices: then
 * the whole file goes to the engine. Returns where it comes from.
 */
async function fill(engine, source, { options, ...rest }, stop) {
    const sources = partsOf(source);
    // A model that is split has to be whole.
    const arriving = sources.length === 1 && options.device !== 'simd' ? options : undefined;
    try {
        return await move(engine, sources, { ...rest, options: arriving }, stop);
    } catch (error) {
        const isRefused = arriving && options.device !== 'gpu' && REFUSALS.includes(error.code);
        if (!isRefused && kindOf(error) !== 'changed') {
            throw error;
        }
        return move(engine, sources, { ...rest, options: isRefused ? undefined : arriving }, stop);
    }
}

async function move(engine, sources, options, stop) {
    const origins = [];
    let before = 0;
    for (const [index, part] of sources.entries()) {
        const isLast = index + 1 === sources.length;
        const onProgress = options.onProgress && (({ loaded, total }) => options.onProgress({
            loaded: before + loaded,
            // The sizes of the parts to come are not known.
            total: isLast && total !== undefined ? before + total : undefined,
        }));
        const { file, bytes } = await movePart(engine, part, { ...options, onProgress }, index > 0, stop);
        origins.push(file);
        before += bytes;
    }
    return joined(origins);
}

/** Moves a file; returns it and the number of its bytes. */
async function movePart(engine, source, options, isMore, stop) {
    const file = await open(source, options);
    try {
        await (isMore ? engine.addPart(file.size) : engine.start(await compiled(), file.size, options.options));
        return { file, bytes: await transfer(engine, file.pieces(), stop) };
    } finally {
        await file.close();
    }
}

/** Where all parts come from: the network if one does. */
function joined(origins) {
    const all = origins.map(({ source }) => source);
    const source = ['network', 'cache', 'local'].find((each) => all.includes(each));
    return { source, cached: origins.every(({ cached }) => cached) };
}

/** Moves the pieces of a file; returns the number of its bytes. */
async function transfer(engine, pieces, stop) {
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
        if (underway.length === MOST_PIECES) {
            await underway.shift();
        }
    }
    await Promise.all(underway);
    return bytes;
}
