import { ANSWER, answer, generated } from './answer.js';
import * as check from './check.js';

/** Closes sessions that nobody has any more. */
const lost = new FinalizationRegistry((place) => close(place));

const close = ({ current, all, reference, number }) => {
    all.delete(reference);
    current.engine.closeSession(number);
};

/** Tokens that a model has read. */
export class Session {
    #current;
    #pairs;
    /** What remains of a session that the collector took: among others its number, which a reload changes. */
    #place;
    /** The tokens so far, which a reload reads again. */
    #tokens;
    #disposed = false;

    /** Use `model.session`. `current` has the model's engine, `all` weak references to the sessions of the model. */
    constructor(current, all, pairs, number, tokens) {
        const reference = new WeakRef(this);
        this.#current = current;
        this.#pairs = pairs;
        this.#place = { current, all, reference, number };
        this.#tokens = tokens;
        all.add(reference);
        lost.register(this, this.#place, reference);
    }

    /** Makes a session of the number that `open` returns; `pairs` lists its adapters. */
    static async open(current, all, pairs, open) {
        const number = await open();
        const tokens = await current.engine.session(number, 'tokens', []);
        return new Session(current, all, pairs, number, [...tokens]);
    }

    /** Reads the tokens again with the model's engine, which a reload has replaced. */
    async renew() {
        const { engine } = this.#current;
        this.#place.number = await engine.openSession(undefined, this.#pairs());
        if (this.#tokens.length > 0) {
            await engine.session(this.#place.number, 'prefill', [Uint32Array.from(this.#tokens)]);
        }
    }

    #used() {
        if (this.#disposed) {
            throw check.disposed('Session');
        }
        return this.#current;
    }

    async #call(method, ...values) {
        return this.#used().engine.session(this.#place.number, method, values);
    }

    async #read(method, tokens) {
        const logits = await this.#call(method, tokens);
        this.#tokens.push(...tokens);
        return logits;
    }

    async prefill(tokens) {
        return this.#read('prefill', check.tokens(tokens));
    }

    async decode(token) {
        return this.#read('prefill', Uint32Array.of(check.count(token, 'token')));
    }

    async logits(tokens) {
        return this.#read('logits', check.tokens(tokens));
    }

    chat(messages, options) {
        return this.#answer({ messages: check.messages(messages) }, options);
    }

    complete(prompt, options) {
        return this.#answer({ prompt: check.text(prompt, 'prompt') }, options);
    }

    #answer(request, given) {
        return answer(this.#current, check.options(given, ANSWER), async (number, options, push) => {
            const { engine } = this.#used();
            try {
                return await generated(engine, number, { ...request, session: this.#place.number, options }, push);
            } finally {
                await this.#remember();
            }
        });
    }

    /** Notes the tokens for a reload. After the loss of an engine those before it are left. */
    async #remember() {
        this.#tokens = await this.tokens().then((tokens) => [...tokens], () => this.#tokens);
    }

    async remove(start, end) {
        const logits = await this.#call('remove', check.count(start, 'start'), check.count(end, 'end'));
        await this.#remember();
        return logits;
    }

    async tokens() {
        return this.#call('tokens');
    }

    async rewind(length) {
        await this.#call('rewind', check.count(length, 'length'));
        this.#tokens.length = length;
    }

    async fork() {
        return Session.open(this.#current, this.#place.all, this.#pairs, () => this.#call('fork'));
    }

    async save() {
        return this.#call('save');
    }

    dispose() {
        if (!this.#disposed) {
            this.#disposed = true;
            lost.unregister(this.#place.reference);
            close(this.#place);
        }
    }

    static {
        if (Symbol.dispose) {
            this.prototype[Symbol.dispose] = this.prototype.dispose;
        }
    }
}
