import { invalid, list } from './checks.js';
import { requireNames } from '../common/options.js';
import { stackAbove } from '../common/stack.js';
import { DeviceBuffer } from './device_buffer.js';
import { RESULT_OPTIONS, allPlaced, apart } from './into.js';
import { guard, requireAbortable } from './methods.js';
import { explained, requireOwner } from './mix_ups.js';
import { MADE, Owner, ownedBy } from '../common/owner.js';
import { partOf } from './parts.js';
import { planOf } from './plan.js';
import { isFull, makeRoom } from './room.js';
import { resultsOf } from './streams.js';

/** @import { ProgramExecutor } from './executors.js' */

/** @param {any} value */
const isPair = (value) => Array.isArray(value) && value.length === 2 && value.every(Number.isInteger);

/** @param {any[]} results */
const buffersOf = (results) => results.map((buffer) => new DeviceBuffer(buffer, MADE));

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
        return buffersOf(await this.#start(false, args, options));
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
        return buffersOf(await this.#start(false, args, options, times, feedback));
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
            const results = now ? [now] : await this.#start(true, args, options);
            now || (isFull() && await makeRoom());
            return allPlaced(results, into);
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
     * Runs with these arguments; the results are arrays if `isRead` is true.
     * @param {boolean} isRead
     * @param {any} args
     * @param {any} options
     * @param {number} [times]
     * @param {number[][]} [feedback]
     */
    #start(isRead, args, options, times = 1, feedback = []) {
        return ownedBy(this).start(this.#setArguments(args), isRead, times, feedback.flat(), options);
    }

    /**
     * Sets the arguments of the next run; returns their number.
     * @param {any} args
     */
    #setArguments(args = []) {
        const executor = ownedBy(this);
        for (const [place, argument] of list('args', args).entries()) {
            argument instanceof DeviceBuffer
                ? executor.setBuffer(place, partOf(`args[${place}]`, argument, DeviceBuffer, this))
                : executor.setValues(place, argument);
        }
        return args.length;
    }
}
