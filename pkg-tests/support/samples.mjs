// JavaScript samples of the README and the guides that stand alone, and the playground's examples. Samples that name a
// file in their first line belong to a host: `guide.mjs` writes them.

import { readFileSync, readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EXAMPLES } from '../../www/examples.js';
import { fileNameOf, printsOf } from '../../www/run/sample.js';

const repository = new URL('../../', import.meta.url);
const BLOCK = /^```js\n([^]*?)^```$/gm;

/** Returns the page, name, text and expected lines of output of each sample. */
export function standaloneSamples() {
  const guides = readdirSync(new URL('docs/guide', repository)).map((file) => `docs/guide/${file}`);
  return ['README.md', ...guides].flatMap((page) => {
    const text = readFileSync(fileURLToPath(new URL(page, repository)), 'utf8');
    const texts = [...text.matchAll(BLOCK)].map(([, code]) => code).filter((code) => !fileNameOf(code));
    return texts.map((code, index) => ({ page, name: `${basename(page, '.md')}-${index + 1}.js`, code, prints: printsOf(code) }));
  });
}

/** Returns the same of the playground's examples, in its order. */
export function exampleSamples() {
  return EXAMPLES.map(({ file }) => {
    const page = `www/examples/${file}`;
    const code = readFileSync(fileURLToPath(new URL(page, repository)), 'utf8');
    return { page, name: `example-${file}`, code, prints: printsOf(code) };
  });
}
