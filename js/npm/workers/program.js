import { checked, foreign, unlessAborted } from '../core.js';
import { copied } from './arguments.js';
import { RemoteBuffer } from './buffer.js';
import { Remote } from './handle.js';
import { nextNumber } from './link.js';

/**
 * @import { BufferExecutor, ProgramExecutor } from '../executors.js'
 * @import { Link } from './link.js'
 */

/**
 * A program that a worker holds; buffers that go in and come out stay there.
 * @implements {ProgramExecutor}
 */
export class RemoteProgram extends Remote {
    #lengths;
    /**
     * The arguments of the next run in a message: numbers of buffers, and copies of values.
     * @type {any[]}
     */
    #arguments = [];

    /**
     * @param {Link} link
     * @param {number} number
     * @param {number[]} lengths the lengths of its results
     */
    constructor(link, number, lengths) {
        super(link, [number]);
        this.#lengths = lengths;
    }

    async describe() {
        return this.call('describe');
    }

    /**
     * @param {number} place
     * @param {any} values
     */
    setValues(place, values) {
        checked(`args[${place}]`, values);
        this.#set(place, copied(values));
    }

    /**
     * @param {number} place
     * @param {BufferExecutor} buffer
     */
    setBuffer(place, buffer) {
        if (!(buffer instanceof RemoteBuffer)) {
            throw foreign(`args[${place}]`, 'device');
        }
        this.#set(place, buffer.number);
    }

    /** Nothing is done at once. */
    readNow() {
        return undefined;
    }

    /**
     * @param {number} count
     * @param {any} options
     */
    kernelTimes(count, options) {
        const args = this.#taken(count);
        return unlessAborted(options, () => this.call('kernelTimes', { held: [args] }));
    }

    /**
     * @param {number} count
     * @param {boolean} read
     * @param {number} times
     * @param {number[]} feedback
     * @param {any} options
     */
    start(count, read, times, feedback, options) {
        const args = this.#taken(count);
        return unlessAborted(options, () => (read ? this.call('read', { held: [args] }) : this.#run(args, [times, feedback])));
    }

    /**
     * Returns buffers for results, of which the worker holds a list until each has its own number.
     * @param {any[]} args
     * @param {any[]} values
     */
    async #run(args, values) {
        const { link } = this;
        const list = nextNumber();
        const work = this.call('run', { held: [args], values, as: list });
        const buffers = this.#lengths.map((length, place) => {
            const as = nextNumber();
            link.call(list, 'at', { values: [place], as }).catch(() => {}); // `work` tells.
            return new RemoteBuffer(link, as, length);
        });
        link.forget([list]);
        try {
            await work;
        } catch (error) {
            buffers.forEach((buffer) => buffer.dispose());
            throw error;
        }
        return buffers;
    }

    /**
     * @param {number} place
     * @param {any} argument
     */
    #set(place, argument) {
        // A call that failed may have left arguments.
        this.#arguments.length = place;
        this.#arguments.push(argument);
    }

    /** @param {number} count */
    #taken(count) {
        const args = this.#arguments.slice(0, count);
        this.#arguments = [];
        return args;
    }
}
