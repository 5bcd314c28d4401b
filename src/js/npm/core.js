// What pages and workers have in common.

import load, { DeviceBuffer, GpuCommandBatch, GpuDevice, Program } from './relampago.js';
import { RelampagoError } from './error.js';
import { ops } from './ops.js';

export { DeviceBuffer, GpuCommandBatch, GpuDevice, Program, RelampagoError, load, ops };

// `using` disposes of an object as its own `dispose` does, which may be called twice and leaves
// later calls an error with a code. The first object of a class that was disposed of stands for
// all later ones, so that these leave nothing in the module's memory.
export const disposable = ({ prototype }) => {
    const { dispose, free } = prototype;
    let first;
    prototype.dispose = prototype.free = function () {
        dispose.call(this);
        first ??= this;
        if (this.__wbg_ptr !== first.__wbg_ptr) {
            free.call(this);
            this.__wbg_ptr = first.__wbg_ptr;
        }
    };
    if (Symbol.dispose) {
        prototype[Symbol.dispose] = function () {
            this.dispose();
        };
    }
};
[DeviceBuffer, GpuCommandBatch, GpuDevice, Program].forEach(disposable);

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

/** Runs a program with these arguments. */
const start = async (program, args = [], read, options, times = 1, feedback = []) => {
    for (const [place, argument] of args.entries()) {
        argument instanceof DeviceBuffer ? program.setBuffer(place, argument) : program.setValues(place, argument);
    }
    const pairs = feedback.flatMap((pair) => [pair?.[0], pair?.[1]]);
    return program.start(args.length, read, times, pairs, options);
};

/** What a plan's description, a list of numbers and names, says. */
const explain = (description) => {
    let at = 0;
    const next = () => description[at++];
    const list = (length, item) => Array.from({ length }, item);
    const place = (number) => (number < 0 ? { input: -1 - number } : { buffer: number });
    const buffers = list(next(), next);
    const kernels = [];
    while (at < description.length) {
        const operations = [];
        while (typeof description[at] === 'string') {
            operations.push(next());
        }
        const writes = { length: next(), ...place(next()) };
        const reads = list(next(), () => ({ length: next(), ...place(next()) }));
        const bytesMoved = reads.reduce((sum, read) => sum + read.length, writes.length) * 4;
        kernels.push({ operations, reads, writes, bytesMoved });
    }
    return { kernels, buffers };
};

for (const { prototype } of [GpuCommandBatch, Program]) {
    prototype.explain = async function () {
        return explain(this.describe());
    };
}

Object.assign(Program.prototype, {
    run(args, options) {
        return start(this, args, false, options);
    },

    async read(args = [], options) {
        const now = options?.signal ? undefined : this.readNow(args);
        return now ? [now] : start(this, args, true, options);
    },

    runN(args, times, feedback, options) {
        return start(this, args, false, options, times, feedback);
    },

    async *stream(runs, options) {
        // The next run is under way while the last one's results are looked at.
        let last;
        for await (const args of runs) {
            const next = this.read(args, options);
            next.catch(() => {}); // Whoever takes the result is told.
            if (last) {
                yield await last;
            }
            last = next;
        }
        if (last) {
            yield await last;
        }
    },
});
