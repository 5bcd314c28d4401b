// Node's fetch does not read files, so they are read here.
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { NodeWorker } from '../common/node_worker.js';
import { RelampagoError, host } from './index.js';

export * from './index.js';
export { default } from './index.js';

/**
 * The path of a `file:` URL, or of a string that is not a URL.
 * @param {any} source
 */
const pathOf = (source) => {
    const url = Object(source) === source ? source.href : source;
    if (/^file:/i.test(url)) {
        return fileURLToPath(url);
    }
    return /^[a-z][a-z0-9+.-]+:/i.test(url) ? undefined : url;
};

// Deno and Bun have the workers of browsers.
if (typeof Worker !== 'function') {
    host.startWorker = (name) => new NodeWorker(new URL(name, import.meta.url));
}
host.threads = availableParallelism();

host.readModule = (source) => {
    const isName = typeof source === 'string' || source instanceof URL;
    const path = isName ? pathOf(source) : undefined;
    return path && readFile(path);
};

host.openFile = async (source) => {
    /** @type {(cause: any) => never} */
    const failed = (cause) => {
        throw new RelampagoError('FILE', `the model could not be read from ${path ?? source}: ${cause.message}`, cause);
    };
    /** @type {string | undefined} */
    let path;
    try {
        path = pathOf(source);
    } catch (error) {
        failed(error); // Not every `file:` URL has a path.
    }
    if (path === undefined) {
        return undefined;
    }
    const { size } = await stat(path).catch(failed);
    const pieces = (async function* () {
        try {
            yield* createReadStream(path, { highWaterMark: 4 << 20 });
        } catch (error) {
            failed(error);
        }
    })();
    return { size, pieces };
};
