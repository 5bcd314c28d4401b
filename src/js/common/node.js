// Node's fetch does not read files, so they are read here.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import init from './index.js';

export * from './index.js';

const read = (source) => {
    const url = Object(source) === source ? source.href : source;
    return /^file:/i.test(url) ? readFile(fileURLToPath(url)) : undefined;
};

export default (source) => init(source, read);
