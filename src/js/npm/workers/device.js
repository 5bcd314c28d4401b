import { GpuDevice, ops } from '../core.js';
import { abortable, copied } from './arguments.js';
import { RemoteBatch } from './batch.js';
import { RemoteBuffer } from './buffer.js';
import { ready, remote } from './handle.js';
import { Link, nextNumber } from './link.js';

/** Its methods for operations are inherited and end in `run`, as a batch's end in `record`. */
export class RemoteDevice extends remote(GpuDevice, 'GpuDevice') {
    #info;
    #policy;
    #again;

    /** A device with these options, unless it is aborted; `again` makes another one. */
    static async start(spawn, options, abort, again) {
        const device = new RemoteDevice(new Link(spawn), [nextNumber()]);
        device.#again = again;
        return ready(device, abortable(abort, () => device.#start(options)));
    }

    async #start(options) {
        const { handle } = this;
        const values = [GpuDevice.module(), options];
        const start = handle.link.call(0, 'start', { values, as: handle.number });
        [, this.#info, this.#policy] = await Promise.all([start, handle.call('info'), handle.call('policy')]);
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

    /** Nothing is done at once. */
    runNow() {}

    run(index, values, options) {
        const [name, inputs, parameters] = ops[index];
        const call = () => this.call(name, values.slice(0, inputs + parameters).map(copied));
        return abortable(options, call);
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
        return ready(buffer, abortable(options, start));
    }

    batch() {
        const { link } = this.handle;
        const as = nextNumber();
        this.handle.post('batch', { as });
        return new RemoteBatch(link, as);
    }

    async rebuild(options) {
        return this.handle.link && this.#again(options);
    }
}
