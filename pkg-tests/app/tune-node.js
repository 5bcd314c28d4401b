// node tune-node.js taught FILE OPTIONS | node tune-node.js losses FILE TEXTS TUNING OPTIONS

import { readFileSync } from 'node:fs';
import * as llm from 'relampago/llm';
import { losses, taught } from './tune.js';

const [what, file, ...rest] = process.argv.slice(2);
const [first, ...others] = rest.map((text) => JSON.parse(text));
const result = what === 'taught'
  ? await taught(llm, file, new Uint8Array(readFileSync(file)), first)
  : await losses(llm, file, first, ...others);
console.log(JSON.stringify(result));
