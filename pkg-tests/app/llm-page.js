import * as llm from 'relampago/llm';
import { answers, deeper, encoder, everything, files, logits, nested, withoutTemplate, words } from './llm.js';

const query = new URLSearchParams(location.search);
const options = {
  worker: query.has('worker') ? query.get('worker') === 'true' : undefined,
  device: query.get('device') ?? undefined,
};

/** The longest time in milliseconds that the page could do nothing. */
let longest = 0;
let last = performance.now();
setInterval(() => {
  const now = performance.now();
  longest = Math.max(longest, now - last);
  last = now;
}, 5);

const bytesOf = async (name) => new Uint8Array(await (await fetch(name)).arrayBuffer());

async function tiny() {
  if (query.has('files')) {
    return files(llm, (name) => new URL(name, location), bytesOf, options);
  }
  const bytes = await bytesOf('tiny.gguf');
  if (query.has('deeper')) {
    return deeper(llm, bytes, 'tiny-lora.gguf', options);
  }
  const file = new File([bytes], 'tiny.gguf');
  const sources = { url: 'tiny.gguf', absolute: new URL('tiny.gguf', location), file, buffer: bytes.buffer };
  return everything(llm, bytes, sources, options);
}

async function model() {
  const requests = JSON.parse(query.get('requests'));
  const result = await answers(llm, 'model.gguf', requests, options);
  return { ...result, longest };
}

async function exact() {
  const texts = await (await fetch('logits.json')).json();
  const ids = (top) => top.map(({ ids }) => ids);
  return logits(llm, 'model.gguf', texts.map(({ tokens, top }) => ({ tokens, ids: ids(top) })), options);
}

async function splits() {
  return words(llm, (name) => name, await (await fetch('words.json')).json(), options);
}

async function encoders() {
  const { cases } = await (await fetch('encoder.json')).json();
  return encoder(llm, 'encoder.gguf', cases.map(({ text }) => text), options);
}

const visits = { requests: model, exact, words: splits, encoder: encoders, base: () => withoutTemplate(llm, 'base.gguf', options), nested: () => nested(llm, 'nested.gguf', options) };
const visit = Object.keys(visits).find((name) => query.has(name));
globalThis.outcome = visit ? visits[visit]() : tiny();
