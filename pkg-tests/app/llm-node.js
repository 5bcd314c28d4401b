// node llm-node.js words | node llm-node.js encoder | node llm-node.js tiny FILE OPTIONS | node llm-node.js files | node llm-node.js deeper FILE ADAPTER | node llm-node.js abortedPrompts FILE | node llm-node.js answers FILE REQUESTS

import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import * as llm from 'relampago/llm';
import { abortedPrompts, answers, deeper, encoder, everything, files, words } from './llm.js';

const [what, file, requests] = process.argv.slice(2);
let result;
if (what === 'tiny') {
  const bytes = new Uint8Array(readFileSync(file));
  const sources = { path: file, url: pathToFileURL(file), text: pathToFileURL(file).href, blob: new Blob([bytes]), buffer: bytes.buffer };
  const options = JSON.parse(requests);
  result = await everything(llm, bytes, sources, options);
  result.gpu = await llm.LanguageModel.load(file, { ...options, device: 'gpu' }).catch(({ code }) => code);
  result.missing = await llm.LanguageModel.load('absent.gguf', options).catch(({ code }) => code);
} else if (what === 'files') {
  result = await files(llm, (name) => name, async (name) => new Uint8Array(readFileSync(name)), {});
} else if (what === 'words') {
  result = await words(llm, (name) => name, JSON.parse(readFileSync('words.json', 'utf8')), {});
} else if (what === 'encoder') {
  const { cases } = JSON.parse(readFileSync('encoder.json', 'utf8'));
  result = await encoder(llm, 'encoder.gguf', cases.map(({ text }) => text), {});
} else if (what === 'deeper') {
  result = await deeper(llm, new Uint8Array(readFileSync(file)), requests, {});
} else if (what === 'abortedPrompts') {
  result = await abortedPrompts(llm, file, {});
} else {
  result = await answers(llm, file, JSON.parse(requests));
}
console.log(JSON.stringify(result));
