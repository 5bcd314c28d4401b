// Node's fetch does not read files, so the module is read here.
import { readFile } from 'node:fs/promises';
import init, { moduleUrl } from './index.js';

export * from './index.js';

export default async function initInNode(source) {
    await init(source ?? readFile(moduleUrl()));
}
