// The operations of the table as methods; ops.d.ts has their types.

import { ops } from '#ops';
import { requireNames } from '../common/options.js';
import { stackAbove } from '../common/stack.js';
import { RESULT_OPTIONS, apart, fit, placed } from './into.js';
import { named } from './methods.js';
import { explained, requireOwner } from './mix_ups.js';
import { ownedBy } from '../common/owner.js';

/** The names of an operation's options, separated by spaces, as a list. */
const namesOf = (/** @type {string | undefined} */ names) => names?.split(' ');

/**
 * Returns the methods of a class of devices.
 * @param {Function} Class
 */
export const computing = (Class) => Object.fromEntries(ops.map(([name, inputs, parameters, , names], index) => {
    const end = inputs + parameters;
    const known = namesOf(names);
    /**
     * @this {any}
     * @param {any[]} values
     */
    const run = async function (...values) {
        let here;
        try {
            requireOwner(this, Class, 'device', name);
            const options = values[end];
            options == null || requireNames(options, RESULT_OPTIONS);
            known && requireNames(values[inputs], known);
            const into = options?.into;
            /** @type {import('./executors.js').DeviceExecutor} */
            const executor = ownedBy(this);
            const now = options?.signal == null ? executor.runNow(index, values, into && apart(into, values)) : undefined;
            // A small operation takes less time than a look at its caller's lines.
            here = now === undefined && executor.link ? stackAbove(run) : undefined;
            const result = now === undefined ? await executor.runOp(index, values, options) : now;
            fit(result, into);
            return placed(result, into);
        } catch (error) {
            throw explained(error, values, run, name, here);
        }
    };
    return [name, run];
}));

/**
 * Returns the methods of a class of batches.
 * @param {Function} Class
 */
export const recording = (Class) => Object.fromEntries(ops.map(([name, inputs, , , names], index) => {
    const known = namesOf(names);
    return [name, named(Class, 'batch', name, function (...values) {
        known && requireNames(values[inputs], known);
        /** @type {import('./executors.js').BatchExecutor} */
        const executor = ownedBy(this);
        return executor.record(index, values);
    })];
}));
