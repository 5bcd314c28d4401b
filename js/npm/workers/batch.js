import { ModuleBatch, RelampagoError, checked, foreign, invalid, list, ops, unlessAborted } from '../core.js';
import { copied } from './arguments.js';
import { RemoteBuffer } from './buffer.js';
import { Remote, ready } from './handle.js';
import { nextNumber } from './link.js';
import { RemoteMatmulCache } from './matmul_cache.js';
import { RemoteProgram } from './program.js';

/**
 * @import { BatchExecutor, BufferExecutor, CacheExecutor } from '../executors.js'
 * @import { Details, Link } from './link.js'
 */

/** @type {[code: string, message: string]} */
const EXECUTING = ['NOT_EXECUTED', 'the batch has not been executed yet'];
/** @type {[code: string, message: string]} */
const EXECUTED = ['ALREADY_EXECUTED', 'the batch was executed already; record a new one'];

/**
 * Finds mistakes in a recording on the page, at once, and records in the worker.
 * @implements {BatchExecutor}
 */
export class RemoteBatch extends Remote {
    /** What the worker holds of it: the batch, and its buffers, whose ids these are. */
    #numbers;
    /** @type {Map<any, number>} */
    #lengths = new Map();
    /**
     * Why nothing can be recorded now.
     * @type {[code: string, message: string] | undefined}
     */
    #closed;

    /**
     * @param {Link} link
     * @param {number} number
     */
    constructor(link, number) {
        const numbers = [number];
        super(link, numbers);
        this.#numbers = numbers;
    }

    /** @param {any} values */
    upload(values) {
        return this.#record('upload', checked('values', values), { values: [copied(values)] });
    }

    /** @param {BufferExecutor} buffer */
    input(buffer) {
        if (!(buffer instanceof RemoteBuffer)) {
            throw foreign('buffer', 'device');
        }
        return this.#record('input', buffer.length, { held: [buffer.number] });
    }

    /** @param {any} length */
    placeholder(length) {
        if (!Number.isInteger(length) || length < 0 || length >= 2 ** 32) {
            throw invalid('length', length, 'a whole number from 0 to 4,294,967,295');
        }
        return this.#record('placeholder', length, { values: [length] });
    }

    /**
     * @param {number} index
     * @param {any[]} values
     */
    record(index, values) {
        const [, inputs, count, , names] = ops[index];
        const ids = values.slice(0, inputs);
        const parameters = values.slice(inputs, inputs + count).map((value) => copied(value, names));
        const length = this.#resultLength(index, ids, parameters);
        return this.#record('record', length, { held: [ids], values: [index, parameters] });
    }

    /**
     * The length of an operation's result. The module, which has the names of inputs, refuses an unknown length by them.
     * @param {number} index
     * @param {any[]} ids
     * @param {any[]} parameters
     */
    #resultLength(index, ids, parameters) {
        const lengths = ids.map((id) => this.#lengths.get(id) ?? NaN);
        try {
            return ModuleBatch.lengthOf(index, [...lengths, ...parameters]);
        } catch (/** @type {any} */ error) {
            const [, what] = /^`(\w+)` is NaN/.exec(error.message) ?? [];
            what && this.#lengthOf(ids[lengths.findIndex(Number.isNaN)], what);
            throw error;
        }
    }

    /**
     * @param {CacheExecutor} cache
     * @param {any} name
     * @param {any} input
     * @param {any} m
     */
    matmulCached(cache, name, input, m) {
        if (!(cache instanceof RemoteMatmulCache)) {
            throw foreign('cache', 'device');
        }
        const length = cache.resultLength(name, this.#lengthOf(input, 'input'), m);
        return this.#record('matmulCached', length, { held: [cache.number, name, input], values: [m] });
    }

    /** @returns {never} */
    customElementwise() {
        throw new RelampagoError('UNSUPPORTED', 'a function cannot go to a worker');
    }

    /**
     * Its values are to be kept, though other operations take them.
     * @param {any} id
     */
    output(id) {
        this.#lengthOf(id);
        this.post('output', { held: [id] });
    }

    async describe() {
        return this.call('describe');
    }

    /**
     * @param {any} outputs
     * @param {any} options
     */
    compile(outputs, options) {
        return unlessAborted(options, async () => {
            const ids = list('outputs', outputs);
            const lengths = ids.map((id) => this.#lengthOf(id, 'outputs'));
            const as = nextNumber();
            const work = this.call('compile', { held: [ids], as });
            return ready(new RemoteProgram(this.link, as, lengths), work);
        });
    }

    /** @param {any} options */
    execute(options) {
        return unlessAborted(options, () => this.#execute());
    }

    /**
     * @param {any} id
     * @param {unknown} _into
     * @param {any} options
     * @returns {Promise<Float32Array>}
     */
    readValues(id, _into, options) {
        return unlessAborted(options, () => {
            this.#computed(id);
            return this.call('readValues', { held: [id] });
        });
    }

    /** @param {any} id */
    keep(id) {
        const length = this.#computed(id);
        const as = nextNumber();
        this.post('keep', { held: [id], as });
        return new RemoteBuffer(this.link, as, length);
    }

    #execute() {
        const work = this.call('execute');
        if (!this.#closed) {
            this.#closed = EXECUTING;
            work.then(() => (this.#closed = EXECUTED), () => (this.#closed = undefined));
        }
        return work;
    }

    /**
     * The id of what the worker is to record.
     * @param {string} name
     * @param {number} length
     * @param {Details} details
     */
    #record(name, length, details) {
        if (this.#closed) {
            throw new RelampagoError(...this.#closed);
        }
        const as = nextNumber();
        this.post(name, { ...details, as });
        this.#numbers.push(as);
        this.#lengths.set(as, length);
        return as;
    }

    /**
     * The length of a buffer that has its values.
     * @param {any} id
     */
    #computed(id) {
        if (this.#closed !== EXECUTED) {
            throw new RelampagoError(...EXECUTING);
        }
        return this.#lengthOf(id);
    }

    /**
     * @param {any} id
     * @returns {number}
     */
    #lengthOf(id, what = 'id') {
        if (!Number.isSafeInteger(id) || id < 0) {
            throw invalid(what, id, 'a BufferId');
        }
        const length = this.#lengths.get(id);
        if (length === undefined) {
            throw foreign(what, 'batch');
        }
        return length;
    }
}
