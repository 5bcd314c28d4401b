// Devices with workers and threads in Node.

import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { NodeWorker } from '../../common/node_worker.js';
import { creating } from './creating.js';

export const create = creating({
    spawn: () => new NodeWorker(new URL('./relampago_worker.js', import.meta.url)),
    spawnSharing: () => new NodeWorker(new URL('./relampago_threads.js', import.meta.url)),
    threads: availableParallelism(),
    compile: async (url) => WebAssembly.compile(await readFile(url)),
});
