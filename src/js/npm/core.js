// What pages and workers have in common.

import load, { DeviceBuffer, GpuCommandBatch, GpuDevice } from './relampago.js';
import { RelampagoError } from './error.js';
import { ops } from './ops.js';

export { DeviceBuffer, GpuCommandBatch, GpuDevice, RelampagoError, load, ops };

// `using` disposes of an object as its own `dispose` does, which may be called twice and leaves
// later calls an error with a code.
for (const { prototype } of [DeviceBuffer, GpuCommandBatch, GpuDevice]) {
    if (Symbol.dispose) {
        prototype[Symbol.dispose] = function () {
            this.dispose();
        };
    }
}

// Every operation as a method of both classes; ops.d.ts has their types.
for (const [index, [name, inputs, parameters]] of ops.entries()) {
    const end = inputs + parameters;
    GpuDevice.prototype[name] = async function (...values) {
        const options = values[end];
        const now = options?.signal ? undefined : this.runNow(index, values);
        return now === undefined ? this.run(index, values, options) : now;
    };
    GpuCommandBatch.prototype[name] = function (...values) {
        return this.record(index, values);
    };
}
