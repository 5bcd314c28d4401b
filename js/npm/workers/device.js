import { ModuleDevice, RelampagoError, checked, ops, unlessAborted } from '../core.js';
import { copied } from './arguments.js';
import { RemoteBatch } from './batch.js';
import { RemoteBuffer } from './buffer.js';
import { Remote, ready } from './handle.js';
import { nextNumber } from './link.js';
import { MATMUL, RemoteMatmulCache } from './matmul_cache.js';
import { RemoteProgram } from './program.js';

/**
 * @import { DeviceExecutor, ViewExecutor } from '../executors.js'
 * @import { Link } from './link.js'
 */

/**
 * The shape of a view that must be one of a matrix.
 * @param {string} what
 * @param {ViewExecutor} view
 */
function matrix(what, { shape }) {
    if (shape[2] * shape[3] !== 1) {
        throw new RelampagoError('INVALID_ARGUMENT', `\`${what}\` is of shape [${shape.join(', ')}], but must be a matrix`);
    }
    return shape;
}

/** @implements {DeviceExecutor} */
export class RemoteDevice extends Remote {
    /** @type {Record<string, any>} */
    #info = {};
    /** @type {Record<string, number>} */
    #policy = {};
    #again;
    /** The device of this thread, which runs what takes less time than messages; undefined without one. */
    #here;

    /**
     * Opens a device with these options in a worker, unless it is aborted; `again` opens another one. `here` is the device of
     * this thread for small operations, if any.
     * @param {Link} link
     * @param {any} options
     * @param {any} abort
     * @param {(abort: any) => Promise<DeviceExecutor>} again
     * @param {DeviceExecutor | undefined} here
     */
    static async start(link, options, abort, again, here) {
        const device = new RemoteDevice(link, again, here);
        link.isShared && link.leave();
        return ready(device, unlessAborted(abort, () => device.#start(options)));
    }

    /**
     * @param {Link} link
     * @param {(abort: any) => Promise<DeviceExecutor>} again
     * @param {DeviceExecutor | undefined} here
     */
    constructor(link, again, here) {
        super(link, [nextNumber()]);
        this.#again = again;
        this.#here = here;
        this.gpuDevice = undefined;
    }

    /** @param {any} options */
    async #start(options) {
        const { link, number } = this;
        const values = [options, ...(link.isShared ? [] : [ModuleDevice.module()])];
        await Promise.all([link.call(0, 'start', { values, as: number }), this.refresh()]);
    }

    /** Asks the worker for its information, which checks change. */
    async refresh() {
        const [info, policy] = await Promise.all([this.call('info'), this.call('policy')]);
        this.#policy = policy;
        this.#info = { ...info, worker: !this.#here };
    }

    /** @returns {string} */
    get backend() {
        return this.#info.backend;
    }

    get info() {
        return { ...this.#info };
    }

    get policy() {
        return { ...this.#policy };
    }

    /**
     * Without a device here nothing is done at once.
     * @param {number} index
     * @param {any[]} values
     * @param {Float32Array | undefined} into
     */
    runNow(index, values, into) {
        return this.#here?.runNow(index, values, into);
    }

    uploadNow() {
        return undefined;
    }

    /** The link tells: see `GpuDevice.owns`. */
    owns() {
        return true;
    }

    /**
     * @param {number} index
     * @param {any[]} values
     * @param {any} options
     */
    runOp(index, values, options) {
        const [, inputs, parameters, , names] = ops[index];
        return unlessAborted(options, () => {
            const copies = values.slice(0, inputs + parameters).map((value) => copied(value, names));
            return this.call('runOp', { values: [index, copies] });
        });
    }

    /**
     * @param {any} values
     * @param {any} options
     */
    async upload(values, options) {
        const as = nextNumber();
        const buffer = new RemoteBuffer(this.link, as, values?.length);
        return ready(buffer, unlessAborted(options, () => this.call('upload', { values: [copied(values)], as })));
    }

    batch() {
        const as = nextNumber();
        this.post('batch', { as });
        return new RemoteBatch(this.link, as);
    }

    /**
     * The program stays in the worker; `sizes` are the lengths of the results.
     * @param {Float32Array} words
     * @param {number[]} sizes
     * @returns {Promise<[RemoteProgram | undefined, ...number[]]>}
     */
    async planGraph(words, sizes) {
        const { link } = this;
        const planned = nextNumber();
        const as = nextNumber();
        try {
            await this.call('planGraph', { values: [words], as: planned });
            /** @type {number[]} */
            const places = await link.call(planned, 'slice', { values: [1] });
            /** @type {number[]} */
            const lengths = [];
            places.forEach((place, at) => place >= 0 && (lengths[place] = sizes[at]));
            // All results may be leaves.
            const take = () => ready(new RemoteProgram(link, as, lengths), link.call(planned, 'at', { values: [0], as }));
            return [lengths.length > 0 ? await take() : undefined, ...places];
        } finally {
            link.forget([planned]);
        }
    }

    matmulCache() {
        const as = nextNumber();
        this.post('matmulCache', { as });
        return new RemoteMatmulCache(this.link, [as]);
    }

    /**
     * Views gather their elements on the page, since these are copied on their way in any case.
     * @param {ViewExecutor} aView
     * @param {any} a
     * @param {ViewExecutor} bView
     * @param {any} b
     * @param {any} options
     */
    async matmulView(aView, a, bView, b, options) {
        const [[m, k], [rows, n]] = [matrix('a', aView), matrix('b', bView)];
        if (rows !== k) {
            const shapes = `\`b\` is ${rows}×${n} beside ${m}×${k}`;
            throw new RelampagoError('INVALID_ARGUMENT', `${shapes}, but must be of as many rows as \`a\` has columns`);
        }
        checked('a', a);
        checked('b', b);
        const values = [aView.gather(a), bView.gather(b), m, k, n];
        return this.runNow(MATMUL, values, undefined) ?? this.runOp(MATMUL, values, options);
    }

    /**
     * @param {any} reduction
     * @param {any} values
     * @param {any} rows
     * @param {any} cols
     * @param {any} options
     */
    tiledReduce2d(reduction, values, rows, cols, options) {
        return this.#forward('tiledReduce2d', [reduction, values, rows, cols], options);
    }

    /**
     * @param {any} reduction
     * @param {any} values
     * @param {any} rows
     * @param {any} cols
     * @param {any} options
     */
    tiledReducePartial(reduction, values, rows, cols, options) {
        return this.#forward('tiledReducePartial', [reduction, values, rows, cols], options);
    }

    /**
     * @param {number} index
     * @param {any[]} values
     * @param {any} options
     */
    tuneOne(index, values, options) {
        return this.#forward('tuneOne', [index, values], options);
    }

    /**
     * @param {boolean} fails
     * @param {any} options
     */
    verifyNow(fails, options) {
        return this.#forward('verifyNow', [fails], options);
    }

    choices() {
        return this.#forward('choices', []);
    }

    /** @param {Uint8Array} choices */
    adoptChoices(choices) {
        return this.#forward('adoptChoices', [choices]);
    }

    /** @param {any} options */
    async rebuild(options) {
        return this.#again(options);
    }

    dispose() {
        super.dispose();
        this.#here?.dispose();
        this.#here?.free?.();
    }

    /**
     * Calls a method whose arguments go to the worker as they are.
     * @param {string} name
     * @param {any[]} values
     * @param {any} [options]
     */
    #forward(name, values, options) {
        return unlessAborted(options, () => this.call(name, { values: values.map((value) => copied(value)) }));
    }
}
