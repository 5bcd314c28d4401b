import { CustomOp } from './custom_op.js';
import { DeviceBuffer } from './device_buffer.js';
import { readInto } from './into.js';
import { GpuMatmulCache } from './matmul_cache.js';
import { guard } from './methods.js';
import { recording } from './operations.js';
import { MADE, Owner, ownedBy } from '../common/owner.js';
import { partOf } from './parts.js';
import { planOf } from './plan.js';
import { Program } from './program.js';

/** @import { BatchExecutor } from './executors.js' */

/** @extends {Owner<BatchExecutor>} */
export class GpuCommandBatch extends Owner {
    static name = 'GpuCommandBatch';

    static {
        Object.assign(this.prototype, recording(this));
        guard(
            this,
            'batch',
            ['upload', 'input', 'placeholder', 'matmulCached', 'customElementwise', 'output', 'keep'],
            { explain: undefined, compile: 1, execute: 0, read: undefined },
        );
    }

    /** @param {any} buffer */
    input(buffer) {
        return ownedBy(this).input(partOf('buffer', buffer, DeviceBuffer, this));
    }

    /**
     * @param {any} cache
     * @param {any} name
     * @param {any} input
     * @param {any} m
     */
    matmulCached(cache, name, input, m) {
        return ownedBy(this).matmulCached(partOf('cache', cache, GpuMatmulCache, this), name, input, m);
    }

    /**
     * @param {any} op
     * @param {any} inputs
     * @param {any} parameters
     */
    customElementwise(op, inputs, parameters) {
        return ownedBy(this).customElementwise(partOf('op', op, CustomOp), inputs, parameters);
    }

    /** @param {any} id */
    keep(id) {
        return new DeviceBuffer(ownedBy(this).keep(id), MADE);
    }

    async explain() {
        return planOf(await ownedBy(this).describe());
    }

    /**
     * @param {any} outputs
     * @param {any} [options]
     */
    async compile(outputs, options) {
        return new Program(await ownedBy(this).compile(outputs, options), MADE);
    }

    /**
     * @param {any} id
     * @param {any} [options]
     */
    async read(id, options) {
        return readInto(options, (into) => ownedBy(this).readValues(id, into, options));
    }
}
