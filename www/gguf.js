// Writes GGUF files, version 3.

const ALIGNMENT = 32;
const STRING = 8;

/** Returns values of metadata: the number of their type in GGUF, and their bytes. */
export const unsigned = (value) => ({ type: 4, bytes: u32(value) });
export const float = (value) => ({ type: 6, bytes: new Uint8Array(Float32Array.of(value).buffer) });
export const string = (value) => ({ type: STRING, bytes: text(value) });
export const strings = (values) => ({ type: 9, bytes: joined([u32(STRING), u64(values.length), ...values.map(text)]) });

/**
 * Returns a file as a `Blob`.
 * @param {Record<string, { type: number, bytes: Uint8Array }>} metadata
 * @param {{ name: string, dimensions: number[], type: number, bytes: Uint8Array }[]} tensors Dimensions begin with the length
 *   of a row; `type` is a number of ggml's.
 */
export function ggufFile(metadata, tensors) {
  const entries = Object.entries(metadata);
  const head = joined([
    new TextEncoder().encode('GGUF'), u32(3), u64(tensors.length), u64(entries.length),
    ...entries.flatMap(([key, { type, bytes }]) => [text(key), u32(type), bytes]),
    ...described(tensors),
  ]);
  return new Blob([head, ...tensors.map(({ bytes }) => bytes)].flatMap((part) => [part, paddingAfter(part)]));
}

const aligned = (length) => Math.ceil(length / ALIGNMENT) * ALIGNMENT;
const paddingAfter = ({ length }) => new Uint8Array(aligned(length) - length);

/** The name, dimensions, type and place of each tensor. */
function described(tensors) {
  let offset = 0;
  return tensors.flatMap(({ name, dimensions, type, bytes }) => {
    const at = offset;
    offset += aligned(bytes.length);
    return [text(name), u32(dimensions.length), ...dimensions.map(u64), u32(type), u64(at)];
  });
}

const u32 = (value) => new Uint8Array(Uint32Array.of(value).buffer);
const u64 = (value) => new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);

function text(value) {
  const bytes = new TextEncoder().encode(value);
  return joined([u64(bytes.length), bytes]);
}

function joined(parts) {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
