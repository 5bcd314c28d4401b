import * as check from './check.js';

/** Tokens that a model has read. */
export class Session {
    #current;
    #all;
    #pairs;
    #number;
    /** The tokens so far, which a reload reads again. */
    #tokens;
    #disposed = false;

    /** Use `model.session`. `current` has the model's engine, `all` the sessions of the model. */
    constructor(current, all, pairs, number, tokens) {
        this.#current = current;
        this.#all = all;
        this.#pairs = pairs;
        this.#number = number;
        this.#tokens = tokens;
        all.add(this);
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
        this.#number = await engine.openSession(undefined, this.#pairs());
        if (this.#tokens.length > 0) {
            await engine.session(this.#number, 'prefill', [Uint32Array.from(this.#tokens)]);
        }
    }

    async #call(method, ...values) {
        if (this.#disposed) {
            throw check.disposed('Session');
        }
        return this.#current.engine.session(this.#number, method, values);
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

    async tokens() {
        return this.#call('tokens');
    }

    async rewind(length) {
        await this.#call('rewind', check.count(length, 'length'));
        this.#tokens.length = length;
    }

    async fork() {
        return Session.open(this.#current, this.#all, this.#pairs, () => this.#call('fork'));
    }

    async save() {
        return this.#call('save');
    }

    dispose() {
        if (!this.#disposed) {
            this.#disposed = true;
            this.#all.delete(this);
            this.#current.engine.closeSession(this.#number);
        }
    }

    static {
        if (Symbol.dispose) {
            this.prototype[Symbol.dispose] = this.prototype.dispose;
        }
    }
}
