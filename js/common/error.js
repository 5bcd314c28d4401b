/** Marks the errors of every entry point, realm and copy of the package. */
const BRAND = Symbol.for('relampago.error');

/** Every error that relampago throws or rejects with. */
export class RelampagoError extends Error {
    /** Minified code has another one. */
    static name = 'RelampagoError';

    /**
     * @param {string} code
     * @param {string} message
     * @param {unknown} [cause]
     */
    constructor(code, message, cause) {
        super(message, cause === undefined ? undefined : { cause });
        this.name = 'RelampagoError';
        this.code = code;
    }

    get [BRAND]() {
        return true;
    }

    /**
     * Each entry point has a class of its own, and recognises the errors of all.
     * @param {any} value
     * @returns {value is RelampagoError}
     */
    static [Symbol.hasInstance](value) {
        return value?.[BRAND] === true;
    }
}
