/** Every error that relampago throws or rejects with. */
export class RelampagoError extends Error {
    /**
     * @param {string} code
     * @param {string} message
     * @param {unknown} cause
     */
    constructor(code, message, cause) {
        super(message, cause === undefined ? undefined : { cause });
        this.name = 'RelampagoError';
        this.code = code;
    }
}
