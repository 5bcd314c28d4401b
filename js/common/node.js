// Node's fetch does not read files, so they are read here.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** @param {any} source */
const read = (source) => {
    const url = Object(source) === source ? source.href : source;
    return /^file:/i.test(url) ? readFile(fileURLToPath(url)) : undefined;
};

/**
 * Returns `init` that also reads `file:` URLs.
 * @param {(source: any, read: (source: any) => Promise<Uint8Array> | undefined) => Promise<void>} init
 */
export const readingFiles = (init) => (/** @type {any} */ source) => init(source, read);
