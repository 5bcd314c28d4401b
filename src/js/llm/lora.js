import * as check from './check.js';
import { RelampagoError } from './error.js';

/** An adapter of a model. */
export class Lora {
    #current;
    #file;
    #alpha;
    #all;
    #number;
    #layers = 0;
    #disposed = false;

    /** Use `model.loadLora`. `current` has the model's engine, `all` the adapters of the model. */
    constructor(current, file, alpha, all) {
        this.#current = current;
        this.#file = file;
        this.#alpha = alpha;
        this.#all = all;
    }

    /** Gives the adapter to the model's engine, which a reload has replaced. */
    async renew() {
        [this.#number, this.#layers] = await this.#current.engine.addLora(this.#file, this.#alpha);
        this.#all.add(this);
    }

    /** The number of linear layers that it changes. */
    get layers() {
        return this.#layers;
    }

    dispose() {
        if (!this.#disposed) {
            this.#disposed = true;
            this.#all.delete(this);
            this.#current.engine.removeLora(this.#number);
        }
    }

    /** Pairs of the module's number and a factor, for adapters of a model. */
    static pairs(list, what, current) {
        return (Array.isArray(list) ? list : [list]).flatMap((each, i) => {
            const { lora, scale = 1 } = each instanceof Lora ? { lora: each } : Object(each);
            if (!(lora instanceof Lora)) {
                throw check.invalid(`${what}[${i}]`, each, 'a Lora, or an object { lora, scale }');
            }
            if (lora.#current !== current) {
                throw new RelampagoError('FOREIGN', `\`${what}[${i}]\` belongs to another model: load it for this one`);
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
