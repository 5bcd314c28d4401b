// JavaScript samples of the README and the guides that stand alone. Samples that name a file in their first line
// belong to a host: `guide.mjs` writes them.

import { readFileSync, readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = new URL('../../', import.meta.url);
const BLOCK = /^```js\n([^]*?)^```$/gm;
const NAMES_FILE = /^\/\/ \S+\.\w+\b[^\n]*\n/;

/** Returns the name, text and expected lines of output of each sample. */
export function standaloneSamples() {
  const guides = readdirSync(new URL('docs/guide', repository)).map((file) => `docs/guide/${file}`);
  return ['README.md', ...guides].flatMap((page) => {
    const text = readFileSync(fileURLToPath(new URL(page, repository)), 'utf8');
    const texts = [...text.matchAll(BLOCK)].map(([, code]) => code).filter((code) => !NAMES_FILE.test(code));
    return texts.map((code, index) => ({ name: `${basename(page, '.md')}-${index + 1}.js`, code, prints: prints(code) }));
  });
}

/** Returns the outputs that a sample states: `console.log(…); // prints: TEXT`. */
const prints = (code) => [...code.matchAll(/\/\/ prints: (.*)$/gm)].map(([, text]) => text);
