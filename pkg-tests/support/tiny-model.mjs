// A tiny random model, with what the crate natively answers, from the crate's tests.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cargo } from './native.mjs';

/** Writes `tiny.gguf`. */
export function writeTinyModel(folder) {
  write(folder, 'generation');
  return JSON.parse(readFileSync(join(folder, 'tiny.json'), 'utf8'));
}

/** Writes a model for each kind of words, and `words.json` with texts and tokens; returns the names of the files. */
export function writeWords(folder) {
  write(folder, 'words');
  const { tokens } = JSON.parse(readFileSync(join(folder, 'words.json'), 'utf8'));
  return ['words.json', ...Object.keys(tokens).map((name) => `words-${name}.gguf`)];
}

/** Writes `encoder.gguf`; returns texts with their ids and vectors. */
export function writeEncoder(folder) {
  write(folder, 'tokens_are_those_of_tokenizers');
  return JSON.parse(readFileSync(join(folder, 'encoder.json'), 'utf8'));
}

/** The bytes of a model whose template has a key that nothing reads. */
export function withoutTemplate(bytes) {
  bytes.write('T', bytes.indexOf('tokenizer.chat_template'));
  return bytes;
}

/** The bytes of a model with another template, which is not longer than its own. */
export function withTemplate(bytes, template) {
  const key = 'tokenizer.chat_template';
  const length = bytes.indexOf(key) + key.length + 4;
  bytes.write(template.padEnd(bytes.readUInt32LE(length)), length + 8);
  return bytes;
}

function write(folder, name) {
  cargo('test', ['--test', 'llm', name], { RELAMPAGO_TINY_MODEL: folder });
}
