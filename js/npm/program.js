import { invalid, list } from './checks.js';
import { requireNames } from '../common/options.js';
import { stackAbove } from '../common/stack.js';
import { DeviceBuffer } from './device_buffer.js';
import { RESULT_OPTIONS, allPlaced, apart } from './into.js';
import { guard, requireAbortable } from './methods.js';
import { explained, requireOwner } from './mix_ups.js';
import { MADE, Owner, ownedBy } from '../common/owner.js';
import { partBeside } from './parts.js';
import { planOf } from './plan.js';
import { isFull, makeRoom } from './room.js';
import { resultsOf } from './streams.js';

/** @import { ProgramExecutor } from './executors.js' */

/** @param {any} value */
const isPair = (value) => Array.isArray(value) && value.length === 2 && value.every(Number.isInteger);

/** @extends {Owner<ProgramExecutor>} */
export class Program extends Owner {
    static name = 'Program';

    static {
        guard(this, 'program', [], { explain: undefined, run: 1, runN: 3, time: 1 });
    }

    async explain() {
        return planOf(await ownedBy(this).describe());
    }

    /**
     * @param {any} args
     * @param {any} [options]
     */
    async run(args, options) {
        return this.#started(args, options);
    }

    /**
     * @param {any} args
     * @param {any} times
     * @param {any} feedback
     * @param {any} [options]
     */
    async runN(args, times = 1, feedback = [], options) {
        if (typeof times !== 'number') {
            throw invalid('times', times, 'a whole number');
        }
        if (!list('feedback', feedback).every(isPair)) {
            throw invalid('feedback', feedback, 'an array of pairs [result, argument]');
        }
        return this.#started(args, options, times, feedback);
    }

    /**
     * @param {any} args
     * @param {any} [options]
     */
    async time(args, options) {
        const times = await ownedBy(this).kernelTimes(this.#setArguments(args), options);
        const plan = await this.explain();
        plan.kernels.forEach((kernel, place) => (kernel.milliseconds = times[place]));
        return plan;
    }

    /**
     * Not wrapped by `namedLater`, since it is called as often as operations are.
     * @param {any} [args]
     * @param {any} [options]
     */
    async read(args = [], options) {
        const entry = Program.prototype.read;
        let here;
        try {
            requireOwner(this, Program, 'program', 'read');
            options == null || requireNames(options, RESULT_OPTIONS);
            const into = list('into', options?.into ?? []);
            const executor = ownedBy(this);
            const now = options?.signal == null ? executor.readNow(list('args', args), apart(into[0], args)) : undefined;
            here = now === undefined && executor.link ? stackAbove(entry) : undefined;
            return allPlaced(now ? [now] : await this.#readAll(args, options), into);
        } catch (error) {
            throw explained(error, [args, options], entry, 'read', here);
        }
    }

    /**
     * @param {any} runs
     * @param {any} [options]
     */
    async *stream(runs, options) {
        requireOwner(this, Program, 'program', 'stream');
        const open = runs?.[Symbol.asyncIterator] ?? runs?.[Symbol.iterator];
        if (!open) {
            throw explained(invalid('runs', runs, 'an iterable'), [], Program.prototype.stream, 'stream');
        }
        requireAbortable(options, 'stream: ');
        const own = { signal: options?.signal };
        yield* resultsOf((args) => this.read(args, own), open.call(runs));
    }

    /**
     * Reads the results if `readNow` does not return them at once.
     * @param {any[]} args
     * @param {any} options
     * @returns {Promise<Float32Array[]>}
     */
    async #readAll(args, options) {
        const results = await ownedBy(this).start(this.#setArguments(args), true, 1, [], options);
        isFull() && await makeRoom();
        return results;
    }

    /**
     * Runs with these arguments, and returns the buffers of the results.
     * @param {any} args
     * @param {any} options
     * @param {number} [times]
     * @param {number[][]} [feedback]
     */
    async #started(args, options, times = 1, feedback = []) {
        const count = this.#setArguments(args);
        const buffers = await ownedBy(this).start(count, false, times, feedback.flat(), options);
        return buffers.map((buffer) => new DeviceBuffer(buffer, MADE));
    }

    /**
     * Sets the arguments of the next run; returns their number.
     * @param {any} args
     */
    #setArguments(args = []) {
        const executor = ownedBy(this);
        for (const [place, argument] of list('args', args).entries()) {
            argument instanceof DeviceBuffer
                ? executor.setBuffer(place, partBeside(this, `args[${place}]`, argument, DeviceBuffer))
                : executor.setValues(place, argument);
        }
        return args.length;
    }
}
