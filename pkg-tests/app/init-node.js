// What init does in Node and in what esbuild makes of this for it: with the paths of the entry's module and of
// its folder. Prints the code and the message of each call's error.

import init, { RelampagoError, moduleUrl } from 'relampago';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [path, order] = process.argv.slice(2);
const url = pathToFileURL(path);
const bytes = readFileSync(path);
// As bundlers make them, whose objects are no URLs to Node.
const alien = { href: url.href, toString: () => url.href, [Symbol.toStringTag]: 'URL' };
const relative = { href: '/_next/a.wasm', toString: () => '/_next/a.wasm', [Symbol.toStringTag]: 'URL' };

const sources = {
  nothing: () => undefined,
  bytes: () => bytes,
  url: () => url,
  text: () => url.href,
  alien: () => alien,
  relative: () => relative,
  missing: () => new URL('nowhere.wasm', url),
  name: () => 'relampago.wasm',
  path: () => path,
  unreachable: () => 'http://127.0.0.1:9/relampago.wasm',
  text_of_no_module: () => new Uint8Array([1, 2, 3]),
  number: () => 5,
  rejection: () => Promise.reject(new Error('no such promise')),
};

async function main() {
  const outcomes = [];
  for (const name of order.split(',')) {
    try {
      await init(sources[name]());
      outcomes.push('done');
    } catch (error) {
      outcomes.push(error instanceof RelampagoError ? [error.code, error.message] : String(error));
    }
  }
  try {
    outcomes.push(String(moduleUrl()));
  } catch (error) {
    outcomes.push([error.code, error.message]);
  }
  // Promises that nobody waits for would end the process before this.
  setTimeout(() => console.log(JSON.stringify(outcomes)), 20);
}

main();
