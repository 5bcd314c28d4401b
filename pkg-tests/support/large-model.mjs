// A model's file that is larger than a WebAssembly module's memory, of which only the beginning is written.

import { open } from 'node:fs/promises';

const COLS = 1024;
/** Together more than 2³⁰ weights, and more than 2³² bytes. */
const ROWS = 1_300_000;

/** The shapes of the weights of a model with one layer. */
const WEIGHTS = {
  'token_embd.weight': [COLS, ROWS],
  'output_norm.weight': [COLS],
  'blk.0.attn_norm.weight': [COLS],
  'blk.0.ffn_norm.weight': [COLS],
};
for (const name of ['attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_gate', 'ffn_up', 'ffn_down']) {
  WEIGHTS[`blk.0.${name}.weight`] = [COLS, COLS];
}
const TOKENS = ['<unk>', '<s>', '</s>', 'a'];

const lengthOf = (shape) => shape.reduce((product, side) => product * side);
const parameters = Object.values(WEIGHTS).map(lengthOf).reduce((sum, length) => sum + length);

/** What the file says. */
export const large = { parameters, weightBytes: 4 * parameters, maxContextLength: 512 };

/** Returns the metadata and the table of tensors, and the size of the file. */
export function largeModel() {
  const pieces = [Buffer.from('GGUF')];
  const u32 = (value) => pieces.push(Buffer.from(Uint32Array.of(value).buffer));
  const u64 = (value) => pieces.push(Buffer.from(BigUint64Array.of(BigInt(value)).buffer));
  const string = (text) => {
    u64(text.length);
    pieces.push(Buffer.from(text));
  };
  const sizes = {
    block_count: 1,
    context_length: large.maxContextLength,
    embedding_length: COLS,
    feed_forward_length: COLS,
    'attention.head_count': 8,
  };
  u32(3);
  u64(Object.keys(WEIGHTS).length);
  u64(5 + Object.keys(sizes).length);
  string('general.architecture');
  u32(8);
  string('llama');
  for (const [key, value] of Object.entries(sizes)) {
    string(`llama.${key}`);
    u32(4);
    u32(value);
  }
  string('llama.attention.layer_norm_rms_epsilon');
  u32(6);
  pieces.push(Buffer.from(Float32Array.of(1e-5).buffer));
  string('tokenizer.ggml.model');
  u32(8);
  string('llama');
  const array = (name, type) => {
    string(`tokenizer.ggml.${name}`);
    u32(9);
    u32(type);
    u64(TOKENS.length);
  };
  array('tokens', 8);
  TOKENS.forEach(string);
  array('scores', 6);
  pieces.push(Buffer.alloc(4 * TOKENS.length));
  let offset = 0;
  for (const [name, shape] of Object.entries(WEIGHTS)) {
    string(name);
    u32(shape.length);
    shape.forEach(u64);
    u32(0);
    u64(offset);
    offset += 4 * lengthOf(shape);
  }
  const head = Buffer.concat(pieces);
  return { head, size: Math.ceil(head.length / 32) * 32 + large.weightBytes };
}

/** Writes the file; its weights take no place on the disk. */
export async function writeLargeModel(path) {
  const { head, size } = largeModel();
  const file = await open(path, 'w');
  await file.write(head);
  await file.truncate(size);
  await file.close();
  return size;
}
