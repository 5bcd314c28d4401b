import {
    DeviceBuffer, GpuCommandBatch, GpuMatmulCache, RelampagoError, cachedLength, checked, foreign, invalid, list, ops,
    unlessAborted,
} from '../core.js';
import { copied } from './arguments.js';
import { RemoteBuffer } from './buffer.js';
import { owned, ready, remote } from './handle.js';
import { nextNumber } from './link.js';
import { RemoteProgram } from './program.js';

const EXECUTING = ['NOT_EXECUTED', 'the batch has not been executed yet'];
const EXECUTED = ['ALREADY_EXECUTED', 'the batch was executed already; record a new one'];

/** Finds mistakes in a recording on the page, at once, and records in the worker. */
export class RemoteBatch extends remote(GpuCommandBatch, 'GpuCommandBatch') {
    /** What the worker holds of it: the batch, and its buffers, whose ids these are. */
    #numbers;
    #lengths = new Map();
    /** Why nothing can be recorded now. */
    #closed;

    constructor(link, number) {
        const numbers = [number];
        super(link, numbers);
        this.#numbers = numbers;
    }

    upload(values) {
        return this.#record('upload', checked('values', values), { values: [copied(values)] });
    }

    input(buffer) {
        if (!(buffer instanceof DeviceBuffer)) {
            throw invalid('buffer', buffer, 'a DeviceBuffer');
        }
        if (!(buffer instanceof RemoteBuffer) || buffer.handle.link !== this.handle.link) {
            throw foreign('buffer', 'device');
        }
        return this.#record('input', buffer.length, { held: [buffer.handle.number] });
    }

    placeholder(length) {
        if (!Number.isInteger(length) || length < 0 || length >= 2 ** 32) {
            throw invalid('length', length, 'a whole number from 0 to 4,294,967,295');
        }
        return this.#record('placeholder', length, { values: [length] });
    }

    record(index, values) {
        const [name, inputs, count, , names] = ops[index];
        const held = values.slice(0, inputs);
        const parameters = values.slice(inputs, inputs + count).map((value) => copied(value, names));
        return this.#record(name, this.#resultLength(index, held, parameters), { held, values: parameters });
    }

    /** The length of an operation's result. The module, which has the names of inputs, refuses an unknown length by them. */
    #resultLength(index, ids, parameters) {
        const lengths = ids.map((id) => this.#lengths.get(id) ?? NaN);
        try {
            return GpuCommandBatch.lengthOf(index, [...lengths, ...parameters]);
        } catch (error) {
            const [, what] = /^`(\w+)` is NaN/.exec(error.message) ?? [];
            what && this.#lengthOf(ids[lengths.findIndex(Number.isNaN)], what);
            throw error;
        }
    }

    matmulCached(cache, name, input, m) {
        if (!(cache instanceof GpuMatmulCache)) {
            throw invalid('cache', cache, 'a GpuMatmulCache');
        }
        if (cache.handle?.link !== this.handle.link) {
            throw foreign('cache', 'device');
        }
        const length = cachedLength(cache, name, this.#lengthOf(input, 'input'), m);
        return this.#record('matmulCached', length, { held: [cache.handle.number, name, input], values: [m] });
    }

    customElementwise() {
        throw new RelampagoError('UNSUPPORTED', 'a function cannot go to a worker');
    }

    /** Its values are to be kept, though other operations take them. */
    output(id) {
        this.#lengthOf(id);
        this.handle.post('output', { held: [id] });
    }

    async explain() {
        return this.handle.call('explain');
    }

    compile(outputs, options) {
        const { handle } = this;
        return unlessAborted(options, async () => {
            const ids = list('outputs', outputs);
            const lengths = ids.map((id) => this.#lengthOf(id, 'outputs'));
            const as = nextNumber();
            const work = handle.call('compile', { held: [ids], as });
            return ready(new RemoteProgram(handle.link, as, lengths), work);
        });
    }

    execute(options) {
        return unlessAborted(options, () => this.#execute());
    }

    readValues(id, _into, options) {
        return unlessAborted(options, () => {
            this.#computed(id);
            return this.handle.call('read', { held: [id] });
        });
    }

    keep(id) {
        const length = this.#computed(id);
        const as = nextNumber();
        this.handle.post('keep', { held: [id], as });
        return new RemoteBuffer(this.handle.link, as, length);
    }

    #execute() {
        const work = this.handle.call('execute');
        if (!this.#closed) {
            this.#closed = EXECUTING;
            const close = (why) => () => (this.#closed = why);
            work.then(close(EXECUTED), close(undefined));
        }
        return work;
    }

    /** The id of what the worker is to record. */
    #record(name, length, details) {
        const { handle } = this;
        if (handle.link && this.#closed) {
            throw new RelampagoError(...this.#closed);
        }
        const as = nextNumber();
        handle.post(name, { ...details, as });
        this.#numbers.push(as);
        this.#lengths.set(as, length);
        return as;
    }

    /** The length of a buffer that has its values. */
    #computed(id) {
        if (this.handle.link && this.#closed !== EXECUTED) {
            throw new RelampagoError(...EXECUTING);
        }
        return this.#lengthOf(id);
    }

    #lengthOf(id, what = 'id') {
        if (!Number.isSafeInteger(id) || id < 0) {
            throw invalid(what, id, 'a BufferId');
        }
        if (!this.#lengths.has(id)) {
            throw foreign(what, 'batch');
        }
        return this.#lengths.get(id);
    }
}
owned(
    RemoteBatch,
    'batch',
    ['upload', 'input', 'placeholder', 'matmulCached', 'customElementwise', 'output', 'keep'],
    { explain: undefined, compile: 1, execute: 0 },
);
