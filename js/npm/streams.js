// Streams of a program's runs. They are objects of the page; a worker only runs the program.

/** @typedef {(args: any) => Promise<Float32Array[]>} Read */

/** Reads results of the arguments of a source, one run at a time. */
class Runs {
    #read;
    #source;
    #isOver = false;
    #isAsked = false;

    /**
     * @param {Read} read
     * @param {Iterator<any> | AsyncIterator<any>} source
     */
    constructor(read, source) {
        this.#read = read;
        this.#source = source;
    }

    /** Begins a run as soon as the source gives its arguments; returns its promise as `run`, or undefined at the end. */
    async begin() {
        this.#isAsked = true;
        try {
            const { done, value } = await this.#source.next();
            this.#isOver ||= Boolean(done);
            const args = await value;
            return this.#isOver ? undefined : { run: handled(this.#read(args)) };
        } catch (error) {
            this.#isOver = true;
            throw error;
        } finally {
            this.#isAsked = false;
        }
    }

    /** Ends the source, unless it ended itself. */
    async end() {
        if (this.#isOver) {
            return;
        }
        this.#isOver = true;
        const end = handled(Promise.resolve(this.#source.return?.()));
        // A source that has not answered yet may never do.
        this.#isAsked || await end;
    }
}

/**
 * Marks the error of a promise as handled, so that it may be awaited later or never. Returns the promise.
 * @template T
 * @param {Promise<T>} promise
 */
const handled = (promise) => {
    promise.catch(() => {});
    return promise;
};

/**
 * Returns the results that `read` reads for the arguments of a source, in their order.
 * @param {Read} read
 * @param {Iterator<any> | AsyncIterator<any>} source
 */
export async function* resultsOf(read, source) {
    const all = new Runs(read, source);
    let last;
    try {
        do {
            // The next run begins while the last one's results are looked at, but these do not wait for its arguments.
            /** @type {ReturnType<Runs['begin']>} */
            const next = handled(all.begin());
            if (last) {
                yield await last.run;
            }
            last = await next;
        } while (last);
    } finally {
        await all.end();
    }
}
