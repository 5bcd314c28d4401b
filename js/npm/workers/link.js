import { RelampagoError } from '../core.js';
import { reuse } from './arguments.js';
import { buffersOf } from './buffers.js';

/**
 * The arguments of a call in a worker: what it holds under the numbers in `held`, and then `values`; `held` may have lists of
 * numbers and arrays, too. If there is a number `as`, the worker holds the result under that, and the promise is of nothing.
 * @typedef {{ held?: any[], values?: any[], as?: number }} Details
 */

/**
 * A worker as browsers have it, or a stand-in for one of Node.
 * @typedef {{
 *     onmessage: any, onerror: any, onmessageerror: any,
 *     postMessage(message: any, transfer: any[]): void,
 *     terminate(): void,
 * }} AnyWorker
 */

// Where numbers begin, no batch on the page has its ids.
let numbers = 2 ** 52;

/** A new number, by which the page and a worker know what the worker holds. */
export const nextNumber = () => ++numbers;

/** A worker that is called upon until nobody uses it any more, and those that take parts of its work. */
export class Link {
    /** @type {AnyWorker[]} */
    #workers = [];
    /** @type {Map<number, { resolve: (value: any) => void, reject: (error: unknown) => void }>} */
    #waiting = new Map();
    #users = 0;
    #started = false;
    /** @type {RelampagoError | undefined} */
    #loss;
    /** Whether the workers share a memory. */
    isShared = false;

    /** @param {(() => AnyWorker)[]} spawns they make the workers, the first one first */
    constructor(spawns) {
        try {
            spawns.forEach((spawn) => this.#workers.push(spawn()));
        } catch (/** @type {any} */ error) {
            this.end();
            throw unsupported(error.message);
        }
        for (const worker of this.#workers) {
            worker.onmessage = (/** @type {{ data: any }} */ { data: [call, value, error, spare] }) => this.#settle(call, value, error, spare);
            worker.onerror = worker.onmessageerror = (/** @type {ErrorEvent} */ event) => {
                event.preventDefault();
                this.#lose(event.message ?? 'the script of a worker, or a message from it, cannot be read');
            };
        }
    }

    /**
     * Has all workers run one module in one memory, and the first one lead. The caller is a user until `leave`.
     * @param {WebAssembly.Module} module
     * @param {WebAssembly.Memory} memory
     */
    async share(module, memory) {
        this.retain();
        const [leader, ...others] = this.#workers;
        const all = (/** @type {AnyWorker[]} */ workers, /** @type {string} */ name, /** @type {any[]} */ values = []) =>
            Promise.all(workers.map((worker) => this.#ask(worker, 0, name, { values })));
        await all(this.#workers, 'share', [module, memory]);
        this.isShared = true;
        await all(others, 'follow');
        await all([leader], 'lead', [this.#workers.length]);
    }

    /**
     * Returns the result of a method of what the worker holds as `target`. Arrays are given away.
     * @param {number} target
     * @param {string} name
     * @param {Details} [details]
     * @returns {Promise<any>}
     */
    call(target, name, details) {
        return this.#ask(this.#workers[0], target, name, details);
    }

    /**
     * @param {AnyWorker} worker
     * @param {number} target
     * @param {string} name
     * @param {Details} details
     */
    #ask(worker, target, name, { held = [], values = [], as } = {}) {
        return new Promise((resolve, reject) => {
            if (this.#loss) {
                throw this.#loss;
            }
            const call = nextNumber();
            try {
                worker.postMessage([call, as, target, name, held, values], buffersOf([held, values]));
            } catch (/** @type {any} */ error) {
                throw new RelampagoError('INVALID_ARGUMENT', `an argument cannot go to a worker: ${error.message}`, error);
            }
            this.#waiting.set(call, { resolve, reject });
        });
    }

    /** Counts one who needs the worker until the call of `release`. */
    retain() {
        this.#users++;
    }

    /** Counts one user less, while there are others. */
    leave() {
        this.#users--;
    }

    /** @param {number[]} numbers */
    release(numbers) {
        this.leave();
        // The answer ends the worker if it is the last one.
        this.forget(numbers);
    }

    /**
     * Lets the worker dispose of what it holds under these numbers.
     * @param {number[]} numbers
     */
    forget(numbers) {
        this.call(0, 'release', { values: [numbers] }).catch(() => {});
    }

    /**
     * @param {number} call
     * @param {any} value
     * @param {any} error
     * @param {ArrayBuffer[]} spare
     */
    #settle(call, value, error, spare = []) {
        reuse(spare);
        if (this.#loss) {
            return; // It was under way when everyone was told.
        }
        if (error && typeof error.code !== 'string') {
            // None of the package's errors: whatever the worker does next may be wrong.
            return this.#lose(error.message);
        }
        this.#started = true;
        const waiting = this.#waiting.get(call);
        this.#waiting.delete(call);
        error ? waiting?.reject(new RelampagoError(error.code, error.message)) : waiting?.resolve(value);
        if (this.#users + this.#waiting.size === 0) {
            this.end();
        }
    }

    /** @param {string} reason */
    #lose(reason) {
        this.#loss ??= this.#started
            ? new RelampagoError('DEVICE_LOST', `the device was lost with its worker: ${reason}`)
            : unsupported(reason);
        this.#waiting.forEach(({ reject }) => reject(this.#loss));
        this.#waiting.clear();
        this.end();
    }

    /** Ends the workers. */
    end() {
        this.#workers.forEach((worker) => worker.terminate());
    }
}

/** @param {string} reason */
function unsupported(reason) {
    return new RelampagoError('UNSUPPORTED', `no worker could be started: ${reason}`);
}
