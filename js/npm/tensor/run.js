// Computes results as one program. Programs are cached by the structure of their graph; values, numbers and
// buffers are arguments.

import { makeRoom } from '../room.js';
import { LEAST_RESIDENT, Resident, described, ordered, requireSources, structure } from './node.js';

/**
 * @import { GpuDevice } from '../device.js'
 * @import { DeviceBuffer } from '../device_buffer.js'
 * @import { Program } from '../program.js'
 * @import { Node, Source } from './node.js'
 *
 * @typedef {{ leaf?: number, result?: number }} Place the index of a result among the leaves, or among a program's results
 * @typedef {{ program: Program | undefined, places: Place[] }} Plan
 * @typedef {{ ready: Promise<Plan>, users: number, isEvicted: boolean }} Entry
 * @typedef {{ order: Node[], leaves: Node[], results: Node[], key: string | undefined }} Recording
 */

/** Programs that a device keeps, the least recently used one first. */
const MAX_PROGRAMS = 64;

class Programs {
    /** @type {Map<string, Entry>} */
    #entries = new Map();
    planned = 0;

    get cached() {
        return this.#entries.size;
    }

    /**
     * Returns the program of a structure, which `plan` makes unless it is cached.
     * @param {string} key
     * @param {() => Promise<Plan>} plan
     */
    find(key, plan) {
        const entry = this.#entries.get(key) ?? this.#plan(key, plan);
        this.#entries.delete(key);
        this.#entries.set(key, entry);
        this.#evict();
        return entry;
    }

    /**
     * @param {string} key
     * @param {() => Promise<Plan>} plan
     * @returns {Entry}
     */
    #plan(key, plan) {
        this.planned += 1;
        const entry = { ready: plan(), users: 0, isEvicted: false };
        // A plan that failed is forgotten, so that the next run plans again. `ready` brings the error to this run.
        entry.ready.catch(() => this.#entries.get(key) === entry && this.#entries.delete(key));
        return entry;
    }

    #evict() {
        for (const [key, entry] of this.#entries) {
            if (this.#entries.size <= MAX_PROGRAMS) {
                return;
            }
            this.#entries.delete(key);
            entry.isEvicted = true;
            discard(entry);
        }
    }
}

/**
 * Disposes of an evicted program, once no run uses it.
 * @param {Entry} entry
 */
const discard = async (entry) => {
    if (entry.isEvicted && entry.users === 0) {
        /**
         * @param {GpuDevice} device
         * @param {Node[]} order
         * @param {Node[]} results
         * @returns {Promise<Plan>}
         */
        const plan = await entry.ready.catch(() => undefined);
        plan?.program?.dispose();
    }
};

/** @type {WeakMap<GpuDevice, Programs>} */
const programs = new WeakMap();

/** @param {GpuDevice} device */
export const programsOf = (device) => {
    const known = programs.get(device) ?? new Programs();
    programs.set(device, known);
    return known;
};

/**
 * Compiles a graph. Returns its program, and for each result its place among results or leaves.
 * @param {GpuDevice} device
 * @param {Node[]} order
 * @param {Node[]} results
 * @returns {Promise<Plan>}
 */
const plan = async (device, order, results) => {
    const sizes = results.map(({ size }) => size);
    const [program, ...places] = await device.planGraph(described(order, results), sizes);
    return { program, places: places.map((place) => (place < 0 ? { leaf: -1 - place } : { result: place })) };
};

/**
 * Calls `f`, and once more if there is no memory, after the collector's turn.
 * @template T
 * @param {() => Promise<T>} f
 */
const withMemory = async (f) => {
    try {
        return await f();
    } catch (/** @type {any} */ error) {
        if (error.code !== 'OUT_OF_MEMORY') {
            throw error;
        }
        await makeRoom();
        return f();
    }
};

/**
 * Moves a leaf's values to the device, once for all who ask meanwhile.
 * @param {Node} leaf
 * @returns {Promise<void>}
 */
const upload = (leaf) => (leaf.uploading ??= moved(leaf).finally(() => (leaf.uploading = undefined)));

/** @param {Node} leaf */
const moved = async (leaf) => {
    const source = /** @type {Float32Array} */ (leaf.source);
    const resident = new Resident(await withMemory(() => leaf.device.upload(source)));
    if (leaf.source === source) {
        leaf.source = resident;
        return;
    }
    // It was disposed of meanwhile.
    resident.release();
};

/**
 * Uploads the large ones of leaves that were used before, so that they are copied twice at most.
 * @param {Node[]} leaves
 */
const settleLeaves = (leaves) => {
    const large = leaves.filter((leaf) => isOnHost(leaf) && leaf.size >= LEAST_RESIDENT);
    const again = large.filter((leaf) => leaf.uploading || leaf.uses++ > 0);
    return again.length > 0 ? Promise.all(again.map(upload)) : undefined;
};

const isOnHost = (/** @type {Node} */ { isLeaf, source }) => isLeaf && source && !(source instanceof Resident);

/**
 * Returns a leaf's source, which a `Resident` keeps until it is released.
 * @param {Node} leaf
 * @returns {Source}
 */
const retained = ({ source }) => (source instanceof Resident ? source.retain() : source);

/**
 * Returns the nodes that results need, in order, their leaves, and the key of their program if they need one.
 * @param {Node[]} results
 * @returns {Recording}
 */
export const recordingOf = (results) => {
    const order = ordered(results);
    const leaves = order.filter((node) => node.isLeaf);
    const key = leaves.length < order.length ? structure(order, results) : undefined;
    return { order, leaves, results, key };
};

/**
 * Returns a stand-in for the program of a recording that needs none; `ready` resolves to positions of leaves.
 * @param {Promise<Plan>} ready
 * @returns {Entry}
 */
const unplanned = (ready) => {
    // If the uploads fail first, nobody waits for this promise; its error must not end the process.
    ready.catch(() => {});
    return { ready, users: 0, isEvicted: false };
};

/**
 * Finds or plans the program of a recording; calls `use` with it, the places of results, and the sources of the leaves
 * `given` in place of the recording's own. The sources are those of now, whatever is disposed of meanwhile.
 * @template T
 * @param {Recording} recording
 * @param {Node[]} given
 * @param {(program: Program | undefined, places: Place[], sources: Source[]) => Promise<T>} use
 */
const withPlan = async ({ order, results, key }, given, use) => {
    requireSources(given);
    const [{ device }] = order;
    const make = () => plan(device, order, results);
    const entry = key === undefined ? unplanned(make()) : programsOf(device).find(key, make);
    // Nothing releases the sources, nor disposes of the program, before it is done.
    entry.users += 1;
    /** @type {Source[]} */
    const sources = given.map(retained);
    try {
        const uploads = settleLeaves(given);
        if (uploads) {
            // They make leaves of leaves, so the structure stays the same.
            await uploads;
            given.forEach((leaf, at) => {
                sources[at] = sources[at] instanceof Resident || leaf.isDisposed ? sources[at] : retained(leaf);
            });
        }
        const { program, places } = await entry.ready;
        return await withMemory(() => use(program, places, sources));
    } finally {
        entry.users -= 1;
        entry.isEvicted && discard(entry);
        sources.forEach((source) => source instanceof Resident && source.release());
    }
};

/** @param {Source[]} sources */
const argumentsOf = (sources) => sources.map((source) => (source instanceof Resident ? source.buffer : source));

/**
 * Reads a leaf that is a result itself.
 * @param {Source} source
 * @param {any} options
 * @returns {Promise<Float32Array> | Float32Array}
 */
const readLeaf = (source, options) =>
    (source instanceof Resident ? source.buffer.read(options) : /** @type {Float32Array} */ (source).slice());

/**
 * Keeps images that were used before on the device as numbers, while the current program runs.
 * @param {Node[]} order
 */
const settleImages = (order) => {
    const again = order.filter((node) => node.isImage && !node.isLeaf && node.uses++ > 0);
    if (again.length > 0) {
        const recording = recordingOf(again);
        // What needs an image that could not be kept converts it.
        keepRecorded(recording, recording.leaves, again).catch(() => {});
    }
};

/**
 * Computes nodes and returns the values of each in a new array.
 * @param {Node[]} nodes
 * @param {any} options
 * @returns {Promise<Float32Array[]>}
 */
export const read = async (nodes, options) => {
    if (nodes.length === 0) {
        return [];
    }
    const recording = recordingOf(nodes);
    settleImages(recording.order);
    return withPlan(recording, recording.leaves, async (program, places, sources) => {
        const signal = options?.signal;
        const computed = program ? await program.read(argumentsOf(sources), { signal }) : [];
        const taken = new Set();
        return Promise.all(places.map(({ leaf, result }) => {
            if (leaf !== undefined) {
                return readLeaf(sources[leaf], { signal });
            }
            const values = computed[Number(result)];
            const isTaken = taken.has(result);
            taken.add(result);
            return isTaken ? values.slice() : values;
        }));
    });
};

/**
 * Computes nodes whose results stay on the device, and makes leaves of them.
 * @param {Node[]} nodes
 * @param {any} options
 */
export const keep = async (nodes, options) => {
    const leaves = nodes.filter((node) => node.isLeaf);
    requireSources(leaves);
    const uploads = Promise.all(leaves.filter(isOnHost).map(upload));
    // Both begin at once: what is disposed of from now on is still there for them.
    await Promise.all([uploads, keepComputed([...new Set(nodes.filter((node) => !node.isLeaf))], options)]);
    requireSources(leaves);
};

/**
 * @param {Node[]} results
 * @param {any} options
 */
const keepComputed = async (results, options) => {
    if (results.length > 0) {
        const recording = recordingOf(results);
        settleImages(recording.order);
        await keepRecorded(recording, recording.leaves, results, options);
    }
};

/**
 * Computes a recording's results with the leaves `given` in place of its own, and makes leaves of the nodes `made`.
 * @param {Recording} recording
 * @param {Node[]} given
 * @param {Node[]} made
 * @param {any} [options]
 */
export const keepRecorded = async (recording, given, made, options) => {
    if (made.length === 0) {
        return;
    }
    await withPlan(recording, given, async (program, places, sources) => {
        const buffers = program ? await program.run(argumentsOf(sources), options) : [];
        const residents = buffers.map((buffer) => new Resident(buffer));
        /** @type {Set<number>} */
        const used = new Set();
        made.forEach((node, at) => settle(node, places[at], residents, sources, used));
        residents.forEach((resident, at) => used.has(at) || resident.release());
    });
    // Those that are nothing but values of the host.
    await Promise.all(made.filter(isOnHost).map(upload));
};

/**
 * Makes a leaf of a node that was computed, unless another run did meanwhile.
 * @param {Node} node
 * @param {Place} place
 * @param {Resident[]} residents
 * @param {Source[]} sources
 * @param {Set<number>} used
 */
const settle = (node, { leaf, result }, residents, sources, used) => {
    if (node.isLeaf) {
        return;
    }
    if (leaf !== undefined) {
        const source = sources[leaf];
        node.settle(source instanceof Resident ? source.retain() : source);
        return;
    }
    const resident = residents[Number(result)];
    node.settle(used.has(Number(result)) ? resident.retain() : resident);
    used.add(Number(result));
};
