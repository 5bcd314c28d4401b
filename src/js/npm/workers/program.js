import { DeviceBuffer, Program, checked, foreign, list, repetition, traced } from '../core.js';
import { abortable, copied } from './arguments.js';
import { RemoteBuffer } from './buffer.js';
import { remote } from './handle.js';
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
        return abortable(options, () => this.handle.call('time', { held: [this.#arguments(args)] }), 'time');
    }

    run(args, options) {
        return abortable(options, () => this.#start('run', args), 'run');
    }

    runN(args, times, feedback, options) {
        return abortable(options, () => this.#start('runN', args, repetition(times, feedback)), 'runN');
    }

    /** Nothing is done at once. */
    readNow() {}

    readAll(args, options) {
        return abortable(options, () => this.handle.call('read', { held: [this.#arguments(args)] }));
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
        return list('args', args).map((argument) => {
            if (!(argument instanceof DeviceBuffer)) {
                checked('argument', argument);
                return copied(argument);
            }
            if (argument.handle?.link !== this.handle.link) {
                throw foreign('argument', 'device');
            }
            return argument.handle.number;
        });
    }
}
for (const name of ['run', 'runN', 'read', 'time']) {
    RemoteProgram.prototype[name] = traced(RemoteProgram.prototype[name]);
}
