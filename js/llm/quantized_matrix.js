import * as check from './check.js';
import { DISPOSE } from '../common/dispose.js';
import { Engine } from './engine.js';
import { host } from './host.js';
import { compiled } from './module.js';
import { WorkerEngine } from './worker_engine.js';

const TYPES = [
    'F32', 'F16', 'BF16', 'Q8_0', 'Q4_0', 'Q4_1', 'Q5_0', 'Q5_1', 'Q2_K', 'Q3_K', 'Q4_K', 'Q5_K', 'Q6_K', 'IQ4_NL', 'IQ4_XS',
];

const OPTIONS = { device: check.oneOf('auto', 'gpu', 'simd'), worker: check.boolean };

/**
 * @import { AnyEngine } from './engines.js'
 * @typedef {{ users: number, started: Promise<AnyEngine> }} Shared an engine, with the number of its matrices
 */

/**
 * The engines of matrices, of this thread and of a worker.
 * @type {Map<boolean, Shared>}
 */
const shared = new Map();

/** @param {boolean} worker */
async function start(worker) {
    /** @type {AnyEngine} */
    const engine = worker ? new WorkerEngine() : new Engine();
    try {
        await engine.start(await compiled(), 0);
        return engine;
    } catch (error) {
        engine.dispose();
        throw error;
    }
}

/**
 * Takes part in an engine, which the first one starts.
 * @param {boolean} worker
 */
function join(worker) {
    const own = shared.get(worker) ?? { users: 0, started: start(worker) };
    shared.set(worker, own);
    own.users++;
    let left = false;
    const leave = () => {
        if (!left && (left = true) && --own.users === 0) {
            shared.get(worker) === own && shared.delete(worker);
            own.started.then((engine) => engine.dispose(), () => {});
        }
    };
    return { started: own.started, leave };
}

/** A matrix of quantised weights. */
export class QuantizedMatrix {
    #engine;
    #leave;
    #number;
    #disposed = false;

    /**
     * Use `QuantizedMatrix.fromBlocks`.
     * @param {AnyEngine} engine
     * @param {() => void} leave
     * @param {number} number
     * @param {{ type: string, rows: number, cols: number, backend: string }} properties
     */
    constructor(engine, leave, number, properties) {
        check.made(engine, 'matrices', 'QuantizedMatrix.fromBlocks');
        this.#engine = engine;
        this.#leave = leave;
        this.#number = number;
        this.type = properties.type;
        this.rows = properties.rows;
        this.cols = properties.cols;
        this.backend = properties.backend;
    }

    /**
     * @param {any} type
     * @param {any} blocks
     * @param {any} rows
     * @param {any} cols
     * @param {any} [options]
     */
    static async fromBlocks(type, blocks, rows, cols, options) {
        check.oneOf(...TYPES)(type, 'type');
        check.count(rows, 'rows');
        check.count(cols, 'cols');
        const bytes = check.bytes(blocks, 'blocks');
        const { device = 'auto', worker = host.worker } = check.options(options, OPTIONS);
        const { started, leave } = join(worker);
        try {
            const engine = await started;
            const [number, backend] = await engine.openMatrix(type, bytes, rows, cols, device);
            return new QuantizedMatrix(engine, leave, number, { type, rows, cols, backend });
        } catch (error) {
            leave();
            throw error;
        }
    }

    /** @param {any} x */
    async matmul(x, m = 1) {
        check.count(m, 'm');
        const copy = check.floats(x, m * this.cols, 'x');
        if (this.#disposed) {
            throw check.disposed('QuantizedMatrix');
        }
        return this.#engine.session(this.#number, 'matmul', [copy, m]);
    }

    dispose() {
        if (!this.#disposed) {
            this.#disposed = true;
            // The engine stays until the matrix's calls have ended.
            this.#engine.closeSession(this.#number).then(this.#leave);
        }
    }

    /** For `using`. */
    [DISPOSE]() {
        this.dispose();
    }
}
