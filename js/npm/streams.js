// Streams of a program's runs. They are objects of the page; a worker only runs the program.

import { Program, invalid, requireAbortable } from './core.js';
import { explained, requireOwner } from './mix_ups.js';

/** Runs a program with the values of a source, one run at a time. */
class Runs {
    #program;
    #options;
    #source;
    #isOver = false;
    #isAsked = false;

    constructor(program, source, options) {
        this.#program = program;
        this.#source = source;
        this.#options = options;
    }

    /** Begins a run as soon as the source gives its arguments; returns its promise as `run`, or undefined at the end. */
    async begin() {
        this.#isAsked = true;
        try {
            const { done, value } = await this.#source.next();
            this.#isOver ||= done;
            const args = await value;
            return this.#isOver ? undefined : { run: handled(this.#program.read(args, this.#options)) };
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

/** Marks the error of a promise as handled, so that it may be awaited later or never. Returns the promise. */
const handled = (promise) => {
    promise.catch(() => {});
    return promise;
};

Program.prototype.stream = async function* stream(runs, options) {
    requireOwner(this, Program, 'program', 'stream');
    const open = runs?.[Symbol.asyncIterator] ?? runs?.[Symbol.iterator];
    if (!open) {
        throw explained(invalid('runs', runs, 'an iterable'), [], stream, 'stream');
    }
    requireAbortable(options, 'stream: ');
    const all = new Runs(this, open.call(runs), { signal: options?.signal });
    let last;
    try {
        do {
            // The next run begins while the last one's results are looked at, but these do not wait for its arguments.
            const next = handled(all.begin());
            if (last) {
                yield await last.run;
            }
            last = await next;
        } while (last);
    } finally {
        await all.end();
    }
};
