import { ANSWER, answer, checkText, generated } from './answer.js';
import * as check from './check.js';
import { Lora } from './lora.js';
import { DISPOSE } from '../common/dispose.js';
import { traceAll } from '../common/stack.js';

/**
 * @import { AnyEngine, Current, Piece } from './engines.js'
 * @import { Chosen } from './lora.js'
 *
 * The parts that close a session after its object was collected: the engine, the session's number there, and the function
 * that ends its use of adapters. A reload replaces the engine and the number.
 * @typedef {{
 *     engine: AnyEngine, number: number, sessions: Set<WeakRef<Session>>, reference: WeakRef<Session>, release: () => void,
 * }} Registration
 */

/**
 * Closes sessions whose objects were collected.
 * @type {FinalizationRegistry<Registration>}
 */
const registry = new FinalizationRegistry((registration) => close(registration));

/** @param {Registration} registration */
const close = ({ engine, number, sessions, reference, release }) => {
    sessions.delete(reference);
    engine.closeSession(number);
    release();
};

/** Tokens that a model has read. */
export class Session {
    #current;
    /** The adapters, with their factors. */
    #chosen;
    /** @type {Registration} */
    #registration;
    /** The tokens so far, which a reload reads again. */
    #tokens;
    #disposed = false;

    /**
     * Use `model.session`. `current` has the model's engine, `sessions` weak references to the sessions of the model.
     * @param {Current} current
     * @param {Set<WeakRef<Session>>} sessions
     * @param {Chosen[]} chosen
     * @param {Pick<Registration, 'engine' | 'number' | 'release'>} opened
     * @param {number[]} tokens
     */
    constructor(current, sessions, chosen, opened, tokens) {
        const { engine, number, release } = Object(opened);
        check.made(engine, 'sessions', 'model.session');
        const reference = new WeakRef(this);
        this.#current = current;
        this.#chosen = chosen;
        this.#registration = { engine, number, sessions, reference, release };
        this.#tokens = tokens;
        sessions.add(reference);
        registry.register(this, this.#registration, reference);
    }

    /**
     * Makes a session of the number that `open` returns for an engine; `chosen` lists its adapters.
     * @param {Current} current
     * @param {Set<WeakRef<Session>>} sessions
     * @param {Chosen[]} chosen
     * @param {(engine: AnyEngine) => Promise<number>} open
     */
    static async open(current, sessions, chosen, open) {
        const { engine } = current;
        const release = Lora.keep(chosen);
        try {
            const number = await open(engine);
            const tokens = await engine.session(number, 'tokens', []);
            return new Session(current, sessions, chosen, { engine, number, release }, [...tokens]);
        } catch (error) {
            release();
            throw error;
        }
    }

    /**
     * Reads the tokens again with an engine that a reload has put in place of the session's.
     * @param {AnyEngine} engine
     */
    async renew(engine) {
        const number = await engine.openSession(undefined, Lora.pairs(this.#chosen));
        if (this.#disposed) {
            engine.closeSession(number);
            return;
        }
        Object.assign(this.#registration, { engine, number });
        if (this.#tokens.length > 0) {
            await engine.session(number, 'prefill', [Uint32Array.from(this.#tokens)]);
        }
    }

    #used() {
        if (this.#disposed) {
            throw check.disposed('Session');
        }
        return this.#registration;
    }

    /**
     * @param {string} method
     * @param {...any} values
     * @returns {Promise<any>}
     */
    async #call(method, ...values) {
        const { engine, number } = this.#used();
        return engine.session(number, method, values);
    }

    /**
     * @param {string} method
     * @param {Uint32Array} tokens
     */
    async #read(method, tokens) {
        /** @param {any} tokens */
        const logits = await this.#call(method, tokens);
        this.#tokens.push(...tokens);
        return logits;
    }

    /** @param {any} tokens */
    async prefill(tokens) {
        return this.#read('prefill', check.tokens(tokens));
    }

    /** @param {any} token */
    async decode(token) {
        return this.#read('prefill', Uint32Array.of(check.count(token, 'token')));
    }

    /** @param {any} tokens */
    async logits(tokens) {
        return this.#read('logits', check.tokens(tokens));
    }

    /**
     * @param {any} messages
     * @param {any} options
     */
    chat(messages, options) {
        return this.#answer({ messages: check.messages(messages) }, options);
    }

    /**
     * @param {any} prompt
     * @param {any} options
     */
    complete(prompt, options) {
        return this.#answer({ prompt: check.text(prompt, 'prompt') }, options);
    }

    /**
     * @param {{ messages?: any, prompt?: string }} request
     * @param {any} given
     */
    #answer(request, given) {
        const options = check.options(given, ANSWER);
        request.messages || checkText(options);
        return answer(this.#current, options, async (id, options, push) => {
            const { engine, number } = this.#used();
            const told = (/** @type {Piece} */ piece) => (piece.read ? (this.#tokens = [...piece.read]) : push(piece));
            return generated(engine, id, { ...request, session: number, options }, told);
        });
    }

    /**
     * @param {any} start
     * @param {any} end
     */
    async remove(start, end) {
        const removal = this.#call('remove', check.count(start, 'start'), check.count(end, 'end'));
        const logits = await removal.catch(async (error) => {
            // After the loss of an engine they are those before.
            this.#tokens = await this.tokens().then((tokens) => [...tokens], () => this.#tokens);
            throw error;
        });
        this.#tokens.splice(start, end - start);
        return logits;
    }

    async tokens() {
        return this.#call('tokens');
    }

    /** @param {any} length */
    async rewind(length) {
        await this.#call('rewind', check.count(length, 'length'));
        this.#tokens.length = length;
    }

    async fork() {
        return Session.open(this.#current, this.#registration.sessions, this.#chosen, () => this.#call('fork'));
    }

    async save() {
        return this.#call('save');
    }

    dispose() {
        if (!this.#disposed) {
            this.#disposed = true;
            registry.unregister(this.#registration.reference);
            close(this.#registration);
        }
    }

    /** For `using`. */
    [DISPOSE]() {
        this.dispose();
    }

    static {
        traceAll(this.prototype, ['prefill', 'decode', 'logits', 'tokens', 'rewind', 'remove', 'fork', 'save']);
    }
}
