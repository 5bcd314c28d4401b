import * as check from './check.js';

/** An adapter of a model. */
export class Lora {
    #engine;
    #number;
    #layers;
    #disposed = false;

    /** Use `model.loadLora`. */
    constructor(engine, [number, layers]) {
        this.#engine = engine;
        this.#number = number;
        this.#layers = layers;
    }

    /** The number of linear layers that it changes. */
    get layers() {
        return this.#layers;
    }

    dispose() {
        if (!this.#disposed) {
            this.#disposed = true;
            this.#engine.removeLora(this.#number);
        }
    }

    /** Pairs of the module's number and a factor, for adapters of a model's engine. */
    static pairs(list, what, engine) {
        return (Array.isArray(list) ? list : [list]).flatMap((each, i) => {
            const { lora, scale = 1 } = each instanceof Lora ? { lora: each } : Object(each);
            if (!(lora instanceof Lora)) {
                throw check.invalid(`${what}[${i}]`, each, 'a Lora, or an object { lora, scale }');
            }
            if (lora.#engine !== engine) {
                throw check.invalid(`${what}[${i}]`, each, 'an adapter of this model');
            }
            if (lora.#disposed) {
                throw check.disposed('Lora');
            }
            return [lora.#number, check.number(scale, `${what}[${i}].scale`)];
        });
    }

    static {
        if (Symbol.dispose) {
            this.prototype[Symbol.dispose] = this.prototype.dispose;
        }
    }
}
