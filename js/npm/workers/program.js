import { DeviceBuffer, Program, checked, foreign, list, repetition, unlessAborted } from '../core.js';
import { copied } from './arguments.js';
import { RemoteBuffer } from './buffer.js';
import { owned, remote } from './handle.js';
import { nextNumber } from './link.js';

/** A program that a worker holds; what goes in and comes out stays there if it is to. */
export class RemoteProgram extends remote(Program, 'Program') {
    #lengths;

    /** `lengths` are those of its results. */
    constructor(link, number, lengths) {
        super(link, [number]);
        this.#lengths = lengths;
    }

    async explain() {
        return this.handle.call('explain');
    }

    time(args, options) {
        return unlessAborted(options, () => this.handle.call('time', { held: [this.#arguments(args)] }));
    }

    run(args, options) {
        return unlessAborted(options, () => this.#start('run', args));
    }

    runN(args, times, feedback, options) {
        return unlessAborted(options, () => this.#start('runN', args, repetition(times, feedback)));
    }

    /** Nothing is done at once. */
    readNow() {}

    readAll(args, options) {
        return unlessAborted(options, () => this.handle.call('read', { held: [this.#arguments(args)] }));
    }

    /** Buffers for results, of which the worker holds a list until each has its own number. */
    async #start(name, args, values) {
        const { link } = this.handle;
        const list = nextNumber();
        const work = this.handle.call(name, { held: [this.#arguments(args)], values, as: list });
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

    /** What stands for arguments in a message: numbers of buffers, and copies of values. */
    #arguments(args = []) {
        return list('args', args).map((argument, place) => {
            const what = `args[${place}]`;
            if (!(argument instanceof DeviceBuffer)) {
                checked(what, argument);
                return copied(argument);
            }
            if (argument.handle?.link !== this.handle.link) {
                throw foreign(what, 'device');
            }
            return argument.handle.number;
        });
    }
}
owned(RemoteProgram, 'program', [], { explain: undefined, run: 1, runN: 3, read: undefined, time: 1 });
