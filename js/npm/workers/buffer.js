import { DeviceBuffer, foreign, unlessAborted } from '../core.js';
import { owned, remote } from './handle.js';

export class RemoteBuffer extends remote(DeviceBuffer, 'DeviceBuffer') {
    #length;

    constructor(link, number, length) {
        super(link, [number], 4 * length || 0); // What has no length is for the worker to refuse.
        this.#length = length;
    }

    get length() {
        return this.handle.link && this.#length;
    }

    get gpuBuffer() {
        return this.handle.link && undefined;
    }

    /** What a batch on the page asks for. */
    get __wbg_ptr() {
        throw foreign('buffer', 'device');
    }

    readValues(_into, options) {
        return unlessAborted(options, () => this.handle.call('read'));
    }
}
owned(RemoteBuffer, 'buffer', [], {});
