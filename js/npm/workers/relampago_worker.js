// Does in a worker what a page asks for, with the objects of the module.

import load, { DeviceBuffer, GpuDevice } from '#computing';
import { buffersOf } from './buffers.js';

/** @import { BatchExecutor, DeviceExecutor, ProgramExecutor } from '../executors.js' */

/**
 * The functions that the page calls by the number 0.
 * @type {Record<string, (...values: any[]) => unknown>}
 */
export const root = {
    /** Opens a device. Workers that share a memory have the module already. */
    async start(options, module) {
        module && await load({ module_or_path: module });
        return GpuDevice.create(options);
    },

    async release(/** @type {number[]} */ numbers) {
        for (const number of numbers) {
            // An object that failed needs no disposal, and neither does an id of a batch.
            held.get(number)?.then((value) => {
                value.dispose?.();
                value.free?.();
            }, () => {});
            held.delete(number);
        }
    },
};

/**
 * Promises of the objects that the page names by numbers. If one fails, every call that uses it fails, too.
 * @type {Map<number, Promise<any>>}
 */
const held = new Map([[0, Promise.resolve(root)]]);

/**
 * Returns the object of a number, or the objects of a list of numbers; another value as it is.
 * @param {any} reference
 * @returns {any}
 */
function resolve(reference) {
    if (Array.isArray(reference)) {
        return Promise.all(reference.map(resolve));
    }
    return typeof reference === 'number' ? held.get(reference) : reference;
}

/**
 * Sets the arguments of a program's next run; returns their number.
 * @param {ProgramExecutor} program
 * @param {any[]} args
 */
function setArguments(program, args) {
    args.forEach((argument, place) => {
        argument instanceof DeviceBuffer ? program.setBuffer(place, argument) : program.setValues(place, argument);
    });
    return args.length;
}

/**
 * Calls that are several in the module, or have another order of arguments: objects come before values in a message.
 * @type {Record<string, (object: any, ...values: any[]) => unknown>}
 */
const CALLS = {
    record: (/** @type {BatchExecutor} */ batch, ids, index, parameters) => batch.record(index, [...ids, ...parameters]),

    /** On SIMD a promise of the module's would take longer than a small operation. */
    runOp: (/** @type {DeviceExecutor} */ device, index, values) =>
        device.runNow(index, values, undefined) ?? device.runOp(index, values, undefined),

    async read(/** @type {ProgramExecutor} */ program, args) {
        const now = program.readNow(args, undefined);
        return now ? [now] : program.start(setArguments(program, args), true, 1, [], undefined);
    },

    run: (/** @type {ProgramExecutor} */ program, args, times, feedback) =>
        program.start(setArguments(program, args), false, times, feedback, undefined),

    kernelTimes: (/** @type {ProgramExecutor} */ program, args) => program.kernelTimes(setArguments(program, args), undefined),
};

/**
 * @param {number} target
 * @param {string} name
 * @param {any[]} references
 * @param {any[]} values
 */
async function perform(target, name, references, values) {
    const [object, ...inputs] = await resolve([target, ...references]);
    if (CALLS[name]) {
        return CALLS[name](object, ...inputs, ...values);
    }
    const member = object[name];
    return typeof member === 'function' ? member.call(object, ...inputs, ...values) : member;
}

onmessage = async ({ data: [call, as, target, name, references, values] }) => {
    const result = perform(target, name, references, values);
    if (as) {
        held.set(as, result);
    }
    try {
        const value = await result;
        const answer = as ? undefined : value;
        // With the arguments, which nothing needs any more.
        const spare = buffersOf([references, values]).filter((buffer) => buffer !== answer?.buffer);
        postMessage([call, answer, undefined, spare], { transfer: [...buffersOf([answer]), ...spare] });
    } catch (/** @type {any} */ { code, message }) {
        postMessage([call, undefined, { code, message }]);
    }
};
