import { RelampagoError } from '../core.js';
import { reuse } from './arguments.js';

// Where numbers begin, no batch on the page has its ids.
let numbers = 2 ** 52;

/** A new number, by which the page and a worker know what the worker holds. */
export const nextNumber = () => ++numbers;

/** A worker that is called upon until nobody uses it any more, and those that take parts of its work. */
export class Link {
    #workers = [];
    #waiting = new Map();
    #users = 0;
    #started = false;
    #loss;
    /** Whether the workers share a memory. */
    isShared = false;

    /** `spawns` make the workers, the first one first. */
    constructor(spawns) {
        try {
            spawns.forEach((spawn) => this.#workers.push(spawn()));
        } catch (error) {
            this.end();
            throw unsupported(error.message);
        }
        for (const worker of this.#workers) {
            worker.onmessage = ({ data }) => this.#settle(...data);
            worker.onerror = worker.onmessageerror = (event) => {
                event.preventDefault();
                this.#lose(event.message ?? 'the script of a worker, or a message from it, cannot be read');
            };
        }
    }

    /** Has all workers run one module in one memory, and the first one lead. The caller is a user until `leave`. */
    async share(module, memory) {
        this.retain();
        const [leader, ...others] = this.#workers;
        const all = (workers, name, values) => Promise.all(workers.map((worker) => this.#ask(worker, 0, name, { values })));
        await all(this.#workers, 'share', [module, memory]);
        this.isShared = true;
        await all(others, 'follow');
        await all([leader], 'lead', [this.#workers.length]);
    }

    /**
     * What the method `name` of what the worker holds as `target` comes to. Its arguments are what
     * it holds under the numbers in `held`, and then `values`; `held` may have lists of numbers and
     * arrays, too. Arrays are given away. If there is a number `as`, the worker holds the result
     * under that, and the promise is of nothing.
     */
    call(target, name, details) {
        return this.#ask(this.#workers[0], target, name, details);
    }

    #ask(worker, target, name, { held = [], values = [], as } = {}) {
        return new Promise((resolve, reject) => {
            if (this.#loss) {
                throw this.#loss;
            }
            const call = nextNumber();
            try {
                worker.postMessage([call, as, target, name, held, values], buffersOf([held, values]));
            } catch (error) {
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

    release(numbers) {
        this.leave();
        // The answer ends the worker if it is the last one.
        this.forget(numbers);
    }

    /** Lets the worker dispose of what it holds under these numbers. */
    forget(numbers) {
        this.call(0, 'release', { values: [numbers] }).catch(() => {});
    }

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
        const { resolve, reject } = this.#waiting.get(call);
        this.#waiting.delete(call);
        error ? reject(new RelampagoError(error.code, error.message)) : resolve(value);
        if (this.#users + this.#waiting.size === 0) {
            this.end();
        }
    }

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

function unsupported(reason) {
    return new RelampagoError('UNSUPPORTED', `no worker could be started: ${reason}`);
}

/** The buffers of arrays in lists, and in lists in these, and of those for results. */
export function buffersOf(lists) {
    const buffers = lists.flat(2).map((value) => (value?.into ?? value)?.buffer);
    return buffers.filter((buffer) => buffer?.[Symbol.toStringTag] === 'ArrayBuffer');
}
