import { GpuDevice, RelampagoError, TensorView, checked, invalid, ops, traced, unlessAborted } from '../core.js';
import { copied, forward } from './arguments.js';
import { RemoteBatch } from './batch.js';
import { RemoteBuffer } from './buffer.js';
import { owned, ready, remote } from './handle.js';
import { Link, nextNumber } from './link.js';
import { RemoteMatmulCache } from './matmul_cache.js';
import { RemoteProgram } from './program.js';

/** The shape of a view that must be one of a matrix. */
function matrix(what, view) {
    if (!(view instanceof TensorView)) {
        throw invalid(`${what}View`, view, 'a TensorView');
    }
    const { shape } = view;
    if (shape[2] * shape[3] !== 1) {
        throw new RelampagoError('INVALID_ARGUMENT', `\`${what}\` is of shape [${shape.join(', ')}], but must be a matrix`);
    }
    return shape;
}

/** Its methods for operations are inherited and end in `runOp`, as a batch's end in `record`. */
export class RemoteDevice extends remote(GpuDevice, 'GpuDevice') {
    #info;
    #policy;
    /** The information that the worker does not have. */
    #own;
    #again;
    /** The device of this thread, which runs what takes less time than messages; undefined without one. */
    #here;

    /**
     * A device with these options, unless it is aborted; `again` makes another one. `here` is the device of this thread for
     * small operations, if any; `alone` says why there is one thread.
     */
    static async start(link, options, abort, again, { here, alone }) {
        const device = new RemoteDevice(link, [nextNumber()]);
        link.isShared && link.leave();
        device.#again = again;
        device.#here = here;
        // A small operation here takes less time than a look at its caller's lines.
        here && ops.forEach(([name]) => (device[name] = GpuDevice.prototype[name]));
        return ready(device, unlessAborted(abort, () => device.#start(link, options, alone)));
    }

    async #start(link, options, threadsReason) {
        const { handle } = this;
        const values = [options, ...(link.isShared ? [] : [GpuDevice.module()])];
        const start = link.call(0, 'start', { values, as: handle.number });
        this.#own = { worker: !this.#here, ...(threadsReason && { threadsReason }) };
        await Promise.all([start, this.refresh()]);
    }

    /** Asks the worker for its information, which checks change. */
    async refresh() {
        const { handle } = this;
        const [info, policy] = await Promise.all([handle.call('info'), handle.call('policy')]);
        this.#policy = policy;
        this.#info = { ...info, ...this.#own };
    }

    get backend() {
        return this.info.backend;
    }

    get info() {
        return this.handle.link && { ...this.#info };
    }

    get policy() {
        return this.handle.link && { ...this.#policy };
    }

    get gpuDevice() {
        return this.handle.link && undefined;
    }

    /** Without a device here nothing is done at once. */
    runNow(index, values, into) {
        return this.handle.link && this.#here?.runNow(index, values, into);
    }

    uploadNow() {}

    runOp(index, values, options) {
        const [name, inputs, parameters, , names] = ops[index];
        const call = () => this.call(name, values.slice(0, inputs + parameters).map((value) => copied(value, names)));
        return unlessAborted(options, call);
    }

    /** An operation on values that are given away. */
    call(name, values) {
        return this.handle.call(name, { values });
    }

    async upload(values, options) {
        const { link } = this.handle;
        const as = nextNumber();
        const buffer = new RemoteBuffer(link, as, values?.length);
        const start = () => this.handle.call('upload', { values: [copied(values)], as });
        return ready(buffer, unlessAborted(options, start));
    }

    batch() {
        const { link } = this.handle;
        const as = nextNumber();
        this.handle.post('batch', { as });
        return new RemoteBatch(link, as);
    }

    /** The program stays in the worker; `sizes` are the lengths of the results. */
    async planGraph(words, sizes) {
        const { link } = this.handle;
        const planned = nextNumber();
        const as = nextNumber();
        try {
            await this.handle.call('planGraph', { values: [words], as: planned });
            const places = await link.call(planned, 'slice', { values: [1] });
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
        const { link } = this.handle;
        const as = nextNumber();
        this.handle.post('matmulCache', { as });
        return new RemoteMatmulCache(link, [as]);
    }

    /** Views gather their elements on the page, since these are copied on their way in any case. */
    async matmulView(aView, a, bView, b, options) {
        const [[m, k], [rows, n]] = [matrix('a', aView), matrix('b', bView)];
        if (rows !== k) {
            const shapes = `\`b\` is ${rows}×${n} beside ${m}×${k}`;
            throw new RelampagoError('INVALID_ARGUMENT', `${shapes}, but must be of as many rows as \`a\` has columns`);
        }
        checked('a', a);
        checked('b', b);
        return this.matmul(aView.gather(a), bView.gather(b), m, k, n, options);
    }

    dispose() {
        super.dispose();
        this.#here?.dispose();
    }

    async rebuild(options) {
        return this.handle.link && this.#again(options);
    }
}
forward(RemoteDevice.prototype, {
    tiledReduce2d: 4,
    tiledReducePartial: 4,
    tuneOne: 2,
    verifyNow: 1,
    adoptChoices: 1,
    choices: 0,
});

owned(
    RemoteDevice,
    'device',
    ['batch', 'matmulCache'],
    { upload: 1, matmulView: 4, tiledReduce2d: 4, tiledReducePartial: 4, rebuild: 0 },
);

// An error of the worker has none of the caller's lines in its stack.
for (const [name] of ops) {
    RemoteDevice.prototype[name] = traced(RemoteDevice.prototype[name]);
}
