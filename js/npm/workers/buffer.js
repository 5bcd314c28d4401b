import { unlessAborted } from '../core.js';
import { Remote } from './handle.js';

/**
 * @import { BufferExecutor } from '../executors.js'
 * @import { Link } from './link.js'
 */

/** @implements {BufferExecutor} */
export class RemoteBuffer extends Remote {
    /**
     * @param {Link} link
     * @param {number} number
     * @param {number} length
     */
    constructor(link, number, length) {
        super(link, [number], 4 * length || 0); // What has no length is for the worker to refuse.
        this.length = length;
        this.gpuBuffer = undefined;
    }

    /**
     * @param {unknown} _into
     * @param {any} options
     * @returns {Promise<Float32Array>}
     */
    readValues(_into, options) {
        return unlessAborted(options, () => this.call('readValues'));
    }
}
