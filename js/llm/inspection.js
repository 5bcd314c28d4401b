// Reads the description of a model from its files, without their weights.

import * as check from './check.js';
import { Engine } from './engine.js';
import { compiled } from './module.js';
import { open } from './source.js';
import { split } from './stream.js';
import { WorkerEngine } from './worker_engine.js';

/** @import { AnyEngine } from './engines.js' */

/** The bytes of a part of a download here: most files have their metadata within some megabytes. */
const PART_BYTES = 1 << 20;

/**
 * Reads the beginnings of a model's files; returns the description of the model.
 * @param {any[]} sources
 * @param {any} options
 */
export async function inspect(sources, { contextLength, cacheType, signal, worker }) {
    const stop = () => check.unaborted(signal);
    stop();
    /** @type {AnyEngine} */
    const engine = worker ? new WorkerEngine() : new Engine();
    try {
        await engine.start(await compiled(), 0);
        /** @type {number[]} */
        const sizes = [];
        for (const source of sources) {
            if (sizes.length > 0) {
                await engine.addPart(0);
            }
            sizes.push(await readHead(engine, source, signal, stop));
        }
        return await engine.inspect(sizes, { contextLength, cacheType });
    } catch (error) {
        stop();
        throw error;
    } finally {
        engine.dispose();
    }
}

/**
 * Moves the beginning of a file to an engine, until its metadata are complete; returns the file's size.
 * @param {AnyEngine} engine
 * @param {any} source
 * @param {AbortSignal | undefined} signal
 * @param {() => void} stop
 */
async function readHead(engine, source, signal, stop) {
    const file = await open(source, { cache: false, signal, partBytes: PART_BYTES });
    try {
        const { size } = file;
        for await (const piece of split(file.pieces(), PART_BYTES)) {
            stop();
            await engine.write(piece);
            if (await engine.hasHead(size)) {
                break;
            }
        }
        return size;
    } finally {
        await file.close();
    }
}
