// Everything from a context of node:vm, the module's own sources included.

import { readFileSync } from 'node:fs';
import { createContext, runInContext } from 'node:vm';
import { realms } from './realms.js';

const [source] = process.argv.slice(2);
const relampago = await import('relampago');
const bytes = readFileSync(relampago.moduleUrl());
const context = createContext({ AbortController, AbortSignal, bytes });
const theirs = runInContext('globalThis', context);
const sources = {
  bytes: () => runInContext('new Uint8Array(bytes)', context),
  buffer: () => runInContext('new Uint8Array(bytes).buffer', context),
  module: () => runInContext('new WebAssembly.Module(bytes)', context),
  promise: () => runInContext('Promise.resolve(bytes)', context),
  thenable: () => ({ then: (resolve) => resolve(bytes) }),
};
await relampago.default(sources[source]());
const others = await Promise.all(['relampago', 'relampago/numeric', 'relampago/train', 'relampago/ptx'].map((name) => import(name)));
console.log(JSON.stringify(await realms(relampago, theirs, others, { backend: 'simd' })));
