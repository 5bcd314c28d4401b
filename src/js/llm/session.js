import * as check from './check.js';

/** Tokens that a model has read. */
export class Session {
    #engine;
    #number;
    #disposed = false;

    /** Use `model.session`. */
    constructor(engine, number) {
        this.#engine = engine;
        this.#number = number;
    }

    #call(method, ...values) {
        if (this.#disposed) {
            throw check.disposed('Session');
        }
        return this.#engine.session(this.#number, method, values);
    }

    async prefill(tokens) {
        return this.#call('prefill', check.tokens(tokens));
    }

    async decode(token) {
        return this.#call('prefill', Uint32Array.of(check.count(token, 'token')));
    }

    async logits(tokens) {
        return this.#call('logits', check.tokens(tokens));
    }

    async tokens() {
        return this.#call('tokens');
    }

    async rewind(length) {
        return this.#call('rewind', check.count(length, 'length'));
    }

    async fork() {
        return new Session(this.#engine, await this.#call('fork'));
    }

    async save() {
        return this.#call('save');
    }

    dispose() {
        if (!this.#disposed) {
            this.#disposed = true;
            this.#engine.closeSession(this.#number);
        }
    }

    static {
        if (Symbol.dispose) {
            this.prototype[Symbol.dispose] = this.prototype.dispose;
        }
    }
}
