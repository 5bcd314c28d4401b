// The classes as pages and workers both have them.

import load, {
    CustomOp, DeviceBuffer, GpuCommandBatch, GpuDevice, GpuMatmulCache, Program, TensorView,
} from '#computing';
import { LOST, lengthOf, overlap } from './arrays.js';
import { RelampagoError } from '../common/error.js';
import { named, namedLater, page } from './methods.js';
import { ops } from '#ops';
import { requireNames, shown } from '../common/options.js';
import { isFull, makeRoom } from './room.js';
import { untilAborted } from '../common/until_aborted.js';

export {
    CustomOp, DeviceBuffer, GpuCommandBatch, GpuDevice, GpuMatmulCache, Program, RelampagoError, TensorView, load, ops,
};
export { classOf, lengthOf } from './arrays.js';
export { countRemote } from './room.js';
export { named, namedLater, requireAbortable } from './methods.js';
export { traced } from '../common/stack.js';

// `using` disposes of an object as its own `dispose` does, which may be called twice and leaves
// later calls an error with a code. The first object of a class that was disposed of stands for
// all later ones, so that these leave nothing in the module's memory.
const disposable = ({ prototype }) => {
    const { dispose, free } = prototype;
    let first;
    prototype.dispose = prototype.free = function () {
        dispose.call(this);
        first ??= this;
        if (this.__wbg_ptr !== first.__wbg_ptr) {
            try {
                free.call(this);
            } catch {} // A call of it is under way, whose own function disposed of it.
            this.__wbg_ptr = first.__wbg_ptr;
        }
    };
    if (Symbol.dispose) {
        prototype[Symbol.dispose] = function () {
            this.dispose();
        };
    }
};
const CLASSES = { CustomOp, DeviceBuffer, GpuCommandBatch, GpuDevice, GpuMatmulCache, Program, TensorView };
for (const [name, Class] of Object.entries(CLASSES)) {
    disposable(Class);
    // The package's scripts have shorter names, which errors should not show.
    Object.defineProperty(Class, 'name', { value: name });
}

export const invalid = (what, value, requirement) => {
    return new RelampagoError('INVALID_ARGUMENT', `\`${what}\` is ${shown(value)}, but must be ${requirement}`);
};

export const foreign = (what, owner) => new RelampagoError('FOREIGN', `\`${what}\` belongs to another ${owner}: copy its values to this one`);

for (const [method, names] of [['insert', ['k', 'n', 'format', 'transposed']], ['insertBlocks', ['k', 'n', 'format']]]) {
    const { [method]: call } = GpuMatmulCache.prototype;
    GpuMatmulCache.prototype[method] = function (name, weights, options, abort) {
        requireNames(options, names);
        return call.call(this, name, weights, options, abort);
    };
}

/** A worker's cache → the rows and columns of its weights, by their names. */
const shapes = new WeakMap();

/** Stores the shapes of the weights of a worker's caches, so that batches find mistakes on the page. */
export const rememberShapes = (prototype) => {
    for (const change of ['insert', 'insertBlocks', 'remove']) {
        const { [change]: call } = prototype;
        prototype[change] = async function (name, weights, options, abort) {
            const shape = [options?.k, options?.n];
            const result = await call.call(this, name, weights, options, abort);
            const known = shapes.get(this) ?? new Map();
            shapes.set(this, known);
            options ? known.set(name, shape) : known.delete(name);
            return result;
        };
    }
};

const MATMUL = ops.findIndex(([name]) => name === 'matmul');

/** Returns the length of a matmul of `m` rows, which are `length` elements, with weights of a worker's cache. */
export const cachedLength = (cache, name, length, m) => {
    const [k, n] = shapes.get(cache)?.get(name) ?? [];
    if (k === undefined) {
        throw invalid('name', name, 'the name of weights in the cache');
    }
    return GpuCommandBatch.lengthOf(MATMUL, [length, k * n, m, k, n]);
};

/** Returns the result of `start`, unless the options' signal aborts before. Messages begin with `prefix`. */
export const unlessAborted = async (options, start, prefix = '') => {
    const signal = options?.signal ?? undefined;
    if (signal !== undefined && typeof signal.aborted !== 'boolean') {
        const message = `${prefix}\`signal\` is ${shown(signal)}, but must be an AbortSignal`;
        throw new RelampagoError('INVALID_ARGUMENT', message);
    }
    const aborted = () => new RelampagoError('ABORTED', `${prefix}aborted by the caller`, signal.reason);
    return untilAborted(signal, start, aborted);
};

export const list = (what, value) => {
    if (!Array.isArray(value)) {
        throw invalid(what, value, 'an array');
    }
    return value;
};

/** The requirement on an array, in the words that the module uses, too. */
export const WITHIN = 'within its buffer, which was detached or became too short';

/** Returns the length of an argument that must be a Float32Array. */
export const checked = (what, value) => {
    const length = lengthOf(value);
    if (length < 0) {
        throw invalid(what, value, length === LOST ? WITHIN : 'a Float32Array');
    }
    return length;
};

/**
 * The array that a caller wants a result in, if nothing is overwritten before it is read: values of
 * an input that is the result's array are, where that is as long, read with or before those of their
 * places.
 */
const apart = (into, inputs) => {
    const overlaps = (input) => input !== into && ArrayBuffer.isView(input) && overlap(input, into);
    return ArrayBuffer.isView(into) && !inputs.some(overlaps) ? into : undefined;
};

/** Checks the array that the caller wants a result in, if in any. */
const fit = (result, into) => {
    if (into === undefined) {
        return;
    }
    const present = lengthOf(into);
    if (present === LOST) {
        throw invalid('into', into, WITHIN);
    }
    if (present !== result.length) {
        const has = present < 0 ? `is ${shown(into)}` : `has ${present} values`;
        const { length } = result;
        const needed = length === undefined ? 'the result is a number' : `must be a Float32Array of ${length} values`;
        throw new RelampagoError('LENGTH_MISMATCH', `\`into\` ${has}, but ${needed}`);
    }
};

/** The result, in the array that the caller wants it in. */
const placed = (result, into) => {
    if (into === undefined) {
        return result;
    }
    into !== result && into.set(result);
    return into;
};

/** Results in arrays, once all of these are right. */
const allPlaced = (results, into) => {
    if (into.length > results.length) {
        throw new RelampagoError('LENGTH_MISMATCH', `\`into\` has ${into.length} arrays for ${results.length} results`);
    }
    results.forEach((result, place) => {
        fit(result, into[place]);
        const own = into[place];
        const shares = (other) => other && other.buffer === own.buffer && overlap(other, own);
        if (own && into.slice(0, place).some(shares)) {
            throw invalid('into', own, 'an array of each result\'s own');
        }
    });
    return results.map((result, place) => placed(result, into[place]));
};

const RESULT_OPTIONS = ['into', 'signal'];

// Every operation as a method of both classes; ops.d.ts has their types.
for (const [index, [name, inputs, parameters, , names]] of ops.entries()) {
    const end = inputs + parameters;
    const known = names?.split(' ');
    const requireOptions = (values) => known && requireNames(values[inputs], known);
    const run = async function (...values) {
        try {
            page.requireOwner(this, GpuDevice, 'device', name);
            const options = values[end];
            options == null || requireNames(options, RESULT_OPTIONS);
            requireOptions(values);
            const into = options?.into;
            const now = options?.signal == null ? this.runNow(index, values, into && apart(into, values)) : undefined;
            const result = now === undefined ? await this.runOp(index, values, options) : now;
            fit(result, into);
            return placed(result, into);
        } catch (error) {
            throw page.explain(error, values, run, name);
        }
    };
    GpuDevice.prototype[name] = run;
    GpuCommandBatch.prototype[name] = named(GpuCommandBatch, 'batch', name, function (...values) {
        requireOptions(values);
        return this.record(index, values);
    });
}

/** Returns the values that `read` resolves to, in the array that the options give. */
const readInto = async (options, read) => {
    options == null || requireNames(options, RESULT_OPTIONS);
    const into = options?.into;
    const values = await read(into);
    fit(values, into);
    return placed(values, into);
};

DeviceBuffer.prototype.read = namedLater(DeviceBuffer, 'buffer', 'read', function (options) {
    return readInto(options, (into) => this.readValues(into, options));
});

GpuCommandBatch.prototype.read = namedLater(GpuCommandBatch, 'batch', 'read', function (id, options) {
    return readInto(options, (into) => this.readValues(id, into, options));
});

for (const [name, reduction] of [['tiledSum2d', 'sum'], ['tiledMax2d', 'max'], ['tiledMin2d', 'min']]) {
    GpuDevice.prototype[name] = namedLater(GpuDevice, 'device', name, function (...values) {
        return this.tiledReduce2d(reduction, ...values.slice(0, 4));
    }, 3);
}

/** Classes, methods whose only option is `signal`, and the places of the options. */
const ABORTABLE = [
    [GpuDevice, 'device', { upload: 1, matmulView: 4, tiledReduce2d: 4, tiledReducePartial: 4, rebuild: 0 }],
    [GpuCommandBatch, 'batch', { compile: 1, execute: 0 }],
    [GpuMatmulCache, 'cache', { insert: 3, insertBlocks: 3, matmulCached: 3 }],
];
for (const [Class, what, places] of ABORTABLE) {
    const { prototype } = Class;
    for (const [method, place] of Object.entries(places)) {
        const { [method]: call } = prototype;
        // A call with wrong arguments rejects its promise; it throws nothing.
        prototype[method] = namedLater(Class, what, method, async function (...values) {
            const result = await call.apply(this, values);
            isFull() && await makeRoom();
            return result;
        }, place);
    }
}

/** Sets the arguments of a program's next run; returns their number. */
const setArguments = (program, args = []) => {
    for (const [place, argument] of list('args', args).entries()) {
        if (!(argument instanceof DeviceBuffer)) {
            program.setValues(place, argument);
        } else if (argument.handle) {
            throw foreign(`args[${place}]`, 'device'); // A worker's.
        } else {
            program.setBuffer(place, argument);
        }
    }
    return args.length;
};

const isPair = (value) => Array.isArray(value) && value.length === 2 && value.every(Number.isInteger);

/** Returns as numbers, which a message can carry: how often a program runs, and the results that it feeds back. */
export const repetition = (times = 1, feedback = []) => {
    if (typeof times !== 'number') {
        throw invalid('times', times, 'a whole number');
    }
    if (!list('feedback', feedback).every(isPair)) {
        throw invalid('feedback', feedback, 'an array of pairs [result, argument]');
    }
    return [times, feedback];
};

/** Runs a program with these arguments. */
const start = async (program, args, read, options, [times, feedback] = repetition()) => {
    const count = setArguments(program, args);
    const results = await program.start(count, read, times, feedback.flat(), options);
    isFull() && await makeRoom();
    return results;
};

/** Returns the plan that a list of numbers and names describes. */
const explain = (description) => {
    let at = 0;
    const next = () => description[at++];
    const list = (length, item) => Array.from({ length }, item);
    const place = (number) => (number < 0 ? { input: -1 - number } : { buffer: number });
    const buffers = list(next(), next);
    const kernels = [];
    while (at < description.length) {
        const backend = next();
        const operations = [];
        while (typeof description[at] === 'string') {
            operations.push(next());
        }
        const writes = { length: next(), ...place(next()) };
        const reads = list(next(), () => ({ length: next(), ...place(next()) }));
        const bytesMoved = reads.reduce((sum, read) => sum + read.length, writes.length) * 4;
        kernels.push({ operations, backend, reads, writes, bytesMoved });
    }
    return { kernels, buffers };
};

for (const [Class, what] of [[GpuCommandBatch, 'batch'], [Program, 'program']]) {
    Class.prototype.explain = namedLater(Class, what, 'explain', function () {
        return explain(this.describe());
    });
}

/** The places of options that have only `signal`. */
const SIGNALS = { run: 1, time: 1, runN: 3 };

const METHODS = {
    run(args, options) {
        return start(this, args, false, options);
    },

    async time(args, options) {
        const times = await this.kernelTimes(setArguments(this, args), options);
        const plan = await this.explain();
        plan.kernels.forEach((kernel, place) => (kernel.milliseconds = times[place]));
        return plan;
    },

    runN(args, times, feedback, options) {
        return start(this, args, false, options, repetition(times, feedback));
    },
};
for (const [name, method] of Object.entries(METHODS)) {
    Program.prototype[name] = namedLater(Program, 'program', name, method, SIGNALS[name]);
}

/** Not wrapped by `namedLater`, since it is called as often as operations are. */
const read = async function (args = [], options) {
    try {
        page.requireOwner(this, Program, 'program', 'read');
        options == null || requireNames(options, RESULT_OPTIONS);
        const into = list('into', options?.into ?? []);
        const now = options?.signal == null ? this.readNow(list('args', args), apart(into[0], args)) : undefined;
        return allPlaced(now ? [now] : await this.readAll(args, options), into);
    } catch (error) {
        throw page.explain(error, [args, options], read, 'read');
    }
};
Program.prototype.read = read;

/** Reads the results if `readNow` does not return them at once. */
Program.prototype.readAll = function (args, options) {
    return start(this, args, true, options);
};
