// Does in a worker what a page asks for, with whatever methods it names.

import { GpuDevice, load } from '../core.js';
import { needNoRoom } from '../room.js';
import { buffersOf } from './link.js';

/** What the page knows by the number 0. */
export const root = {
    /** Opens a device. Workers that share a memory have the module already. */
    async start(options, module) {
        needNoRoom();
        module && await load({ module_or_path: module });
        return GpuDevice.create(options);
    },

    async release(numbers) {
        for (const number of numbers) {
            // What never came or failed is nothing to dispose of, and neither are a batch's ids.
            held.get(number)?.then((value) => value.dispose?.(), () => {});
            held.delete(number);
        }
    },
};

/** What the page knows by a number: promises, so that a failure is that of all that builds on it. */
const held = new Map([[0, root]]);

/** What a number, or a list of numbers, stands for; an array stands for itself. */
function resolve(reference) {
    if (Array.isArray(reference)) {
        return Promise.all(reference.map(resolve));
    }
    return typeof reference === 'number' ? held.get(reference) : reference;
}

async function perform(target, name, references, values) {
    const [object, ...inputs] = await resolve([target, ...references]);
    const member = object[name];
    return typeof member === 'function' ? member.call(object, ...inputs, ...values) : member;
}

onmessage = async ({ data: [call, as, ...what] }) => {
    const result = perform(...what);
    if (as) {
        held.set(as, result);
    }
    try {
        const value = await result;
        const answer = as ? undefined : value;
        // With the arguments, which nothing needs any more.
        const spare = buffersOf(what.slice(2)).filter((buffer) => buffer !== answer?.buffer);
        postMessage([call, answer, undefined, spare], [...buffersOf([answer]), ...spare]);
    } catch ({ code, message }) {
        postMessage([call, undefined, { code, message }]);
    }
};
