import { readInto } from './into.js';
import { guard } from './methods.js';
import { Owner, ownedBy } from '../common/owner.js';

/** @import { BufferExecutor } from './executors.js' */

/** @extends {Owner<BufferExecutor>} */
export class DeviceBuffer extends Owner {
    // The package's scripts have shorter names, which errors should not show.
    static name = 'DeviceBuffer';

    static {
        guard(this, 'buffer', [], { read: undefined });
    }

    get length() {
        return ownedBy(this).length;
    }

    get gpuBuffer() {
        return ownedBy(this).gpuBuffer;
    }

    /** @param {any} [options] */
    async read(options) {
        return readInto(options, (into) => ownedBy(this).readValues(into, options));
    }
}
