// A model's file that is larger than a WebAssembly module's memory, of which only the beginning is written.

import { open } from 'node:fs/promises';

const COLS = 1024;
/** Together more than 2³⁰ weights, and more than 2³² bytes. */
const ROWS = 1_300_000;

/** What the file says. */
export const large = {
  parameters: COLS * ROWS + COLS,
  embeddingBytes: 4 * COLS * ROWS,
  weightBytes: 4 * (COLS * ROWS + COLS),
  maxContextLength: 512,
};

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
  u64(2);
  u64(2 + Object.keys(sizes).length);
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
  const tensor = (name, shape, offset) => {
    string(name);
    u32(shape.length);
    shape.forEach(u64);
    u32(0);
    u64(offset);
  };
  tensor('token_embd.weight', [COLS, ROWS], 0);
  tensor('output_norm.weight', [COLS], large.embeddingBytes);
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
