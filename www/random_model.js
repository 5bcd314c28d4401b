// A small random language model, the same on every machine. The page makes it, so that nothing is downloaded.

import { float, ggufFile, string, strings, unsigned } from './gguf.js';

const LAYERS = 4;
const WIDTH = 256;
const HEADS = 8;
const KV_HEADS = 4;
const FEED_FORWARD = 768;
const CONTEXT = 256;
/** The numbers of ggml's types. */
const [F32, Q8_0] = [0, 8];
/** A block of Q8_0 has a scale in f16, and integers. */
const BLOCK = { weights: 32, bytes: 34 };
/** 2⁻¹¹ in f16. */
const SCALE = 0x1000;

/** Returns the model as a GGUF file of 3 MB. */
export function randomModel() {
  const random = generator(1);
  const matrix = (name, columns, rows) => ({ name: `${name}.weight`, dimensions: [columns, rows], type: Q8_0, bytes: blocks(columns * rows, random) });
  const tokens = [...byteTokens(), 'he'];
  const layers = Array.from({ length: LAYERS }, (_, layer) => tensorsOf(`blk.${layer}.`, matrix));
  return ggufFile(metadataOf(tokens), [matrix('token_embd', WIDTH, tokens.length), ...layers.flat(), ones('output_norm')]);
}

function metadataOf(tokens) {
  return {
    'general.architecture': string('llama'),
    'llama.block_count': unsigned(LAYERS),
    'llama.context_length': unsigned(CONTEXT),
    'llama.embedding_length': unsigned(WIDTH),
    'llama.feed_forward_length': unsigned(FEED_FORWARD),
    'llama.attention.head_count': unsigned(HEADS),
    'llama.attention.head_count_kv': unsigned(KV_HEADS),
    'llama.attention.layer_norm_rms_epsilon': float(1e-5),
    'tokenizer.ggml.model': string('gpt2'),
    'tokenizer.ggml.pre': string('smollm'),
    'tokenizer.ggml.tokens': strings(tokens),
    'tokenizer.ggml.merges': strings(['h e']),
  };
}

function tensorsOf(layer, matrix) {
  const keys = (WIDTH / HEADS) * KV_HEADS;
  return [
    ones(`${layer}attn_norm`),
    matrix(`${layer}attn_q`, WIDTH, WIDTH),
    matrix(`${layer}attn_k`, WIDTH, keys),
    matrix(`${layer}attn_v`, WIDTH, keys),
    matrix(`${layer}attn_output`, WIDTH, WIDTH),
    ones(`${layer}ffn_norm`),
    matrix(`${layer}ffn_gate`, WIDTH, FEED_FORWARD),
    matrix(`${layer}ffn_up`, WIDTH, FEED_FORWARD),
    matrix(`${layer}ffn_down`, FEED_FORWARD, WIDTH),
  ];
}

const ones = (name) => ({ name: `${name}.weight`, dimensions: [WIDTH], type: F32, bytes: new Uint8Array(new Float32Array(WIDTH).fill(1).buffer) });

/** Returns random weights in blocks of Q8_0. */
function blocks(weights, random) {
  const bytes = Uint8Array.from({ length: (weights / BLOCK.weights) * BLOCK.bytes }, random);
  const view = new DataView(bytes.buffer);
  for (let block = 0; block < bytes.length; block += BLOCK.bytes) {
    view.setUint16(block, SCALE, true);
  }
  return bytes;
}

/** Returns a function that returns random bytes: a linear congruential generator, with the constants of Numerical Recipes. */
function generator(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 24;
  };
}

/** Returns the characters that stand for bytes in vocabularies of byte pairs. */
function byteTokens() {
  const isPrintable = (byte) => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isPrintable(byte) ? byte : next++));
}
