// Large operations on SIMD, divided among the calling thread and helpers in workers. The kernels
// treat every row alike, so the values are those of one thread.

import { GpuCommandBatch, lengthOf, ops, requireAbortable, unlessAborted } from '../core.js';
import { allocated, copied, reuse, taken } from './arguments.js';
import { RemoteDevice } from './device.js';
import { plans } from './plans.js';

/** The device, with as many helpers as that; `again` makes another one like it. */
export async function helped(device, spawn, count, abort, again) {
    const start = () => RemoteDevice.start(spawn, { backend: 'simd' }, abort);
    const starting = Array.from({ length: count }, start);
    try {
        return employed(device, await Promise.all(starting), again);
    } catch (error) {
        starting.forEach((helper) => helper.then((other) => other.dispose(), () => {}));
        device.dispose();
        throw error;
    }
}

/** Gives the device, in which all operations end, ways of its own to run them. */
function employed(device, helpers, again) {
    const { runOp, runNow } = device;
    // A helper that failed takes its share of one operation with it, but not of the next.
    const present = () => helpers.filter(({ handle }) => !handle.link.lost);
    const divided = (index, values) => {
        const [name, inputs, parameters] = ops[index];
        const call = values.slice(0, inputs + parameters);
        const parts = plans[name] && isRight(index, call) && plans[name](present().length + 1, ...call);
        return parts?.length > 1 ? parts : undefined;
    };
    device.runNow = (index, values, into) =>
        divided(index, values) ? undefined : runNow.call(device, index, values, into);
    device.runOp = (index, values, options) => {
        const parts = divided(index, values);
        const alone = async (values, into) => runNow.call(device, index, values, into);
        return parts
            ? unlessAborted(options, () => together(index, parts, present(), alone))
            : runOp.call(device, index, values, options);
    };
    device.helpers = () => present().length;
    device.rebuild = async (abort) => {
        requireAbortable(abort, 'rebuild: ');
        return device.info && again(abort);
    };
    for (const end of ['dispose', 'free']) {
        const own = device[end];
        device[end] = () => {
            helpers.splice(0).forEach((helper) => helper.dispose());
            own.call(device);
        };
    }
    return device;
}

/** Whether there is no mistake in a call; one thread will say which. */
function isRight(index, values) {
    try {
        return resultLength(index, values) > 0;
    } catch {
        return false;
    }
}

function resultLength(index, values) {
    const inputs = ops[index][1];
    const lengths = values.map((value, i) => (i < inputs ? lengthOf(value) : value));
    return GpuCommandBatch.lengthOf(index, lengths);
}

async function together(index, parts, helpers, alone) {
    const [own, ...others] = parts;
    const total = parts.reduce((sum, { length }) => sum + length, 0);
    const result = allocated(total, () => new Float32Array(total));
    // WebKitGTK's isolated pages have no memory to share all the same.
    const mayShare = globalThis.crossOriginIsolated && globalThis.SharedArrayBuffer;
    const give = others.length > 1 && mayShare ? sharing() : copied;
    const theirs = others.map(({ values }, i) => {
        const given = values.map((value) => give(value));
        return helpers[i].call(ops[index][0], [...given, place(index, values)]);
    });
    // Where it belongs, unless more comes out than that.
    const ours = alone(own.values, result.subarray(0, own.length));
    // Memory that was never used takes time when it is first written, of which there is some now.
    result.fill(0, own.length);
    let end = 0;
    const filling = [ours, ...theirs].map(async (part, i) => {
        const { skipped = 0, length } = parts[i];
        const start = end;
        end += length;
        const values = await part;
        // While others still compute.
        if (values.buffer !== result.buffer) {
            result.set(values.subarray(skipped, skipped + length), start);
            reuse([values.buffer]);
        }
    });
    await Promise.all(filling);
    return result;
}

/** Options with an array for the result, if there is one that needs not be made. */
function place(index, values) {
    const buffer = taken(4 * resultLength(index, values));
    return buffer && { into: new Float32Array(buffer) };
}

/** Copies in shared memory: of what several helpers need, one. */
function sharing() {
    const copies = new Map();
    return (value) => {
        if (lengthOf(value) >= 0 && !copies.has(value)) {
            const memory = allocated(value.length, () => new SharedArrayBuffer(value.byteLength));
            copies.set(value, new Float32Array(memory));
            copies.get(value).set(value);
        }
        return copies.get(value) ?? value;
    };
}
