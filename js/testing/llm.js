// Stands for the module of language models, in unit tests: a file's metadata end after `headBytes` bytes.

export const file = { headBytes: Infinity };

export class ModelBytes {
    /** @type {number[]} */
    content = [];
    isFreed = false;
    attempts = 0;

    /** @param {Uint8Array} piece */
    write(piece) {
        this.content.push(...piece);
    }

    hasHead() {
        this.attempts++;
        return this.content.length >= file.headBytes;
    }

    free() {
        this.isFreed = true;
    }
}
