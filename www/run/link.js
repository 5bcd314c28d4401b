// Links to the playground that carry code in their fragment, compressed.

const PLAYGROUND = new URL('../playground.html', import.meta.url);
const KEY = 'code';
/** The most characters that a link unpacks to: a few bytes may hold gigabytes of zeros. */
const LONGEST = 1 << 20;

/** Returns the URL of the playground with `code` in it. */
export async function linkTo(code) {
  const packed = new Blob([code]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  const url = new URL(PLAYGROUND);
  url.hash = `${KEY}=${toText(new Uint8Array(await new Response(packed).arrayBuffer()))}`;
  return url;
}

/** Returns the code in the fragment of a link, or undefined if it has none. A damaged link is an error. */
export async function codeIn(fragment) {
  const text = new URLSearchParams(fragment.replace(/^#/, '')).get(KEY);
  if (text === null) {
    return undefined;
  }
  try {
    return await unpacked(toBytes(text));
  } catch {
    throw new Error('The link to this page is damaged, so that its code cannot be read.');
  }
}

async function unpacked(bytes) {
  const chunks = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw')).pipeThrough(new TextDecoderStream('utf-8', { fatal: true }));
  const reader = chunks.getReader();
  let code = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    code += part.value;
    if (code.length > LONGEST) {
      await reader.cancel();
      throw new RangeError('too long');
    }
  }
  return code;
}

/** Base64 in the alphabet for URLs. */
const toText = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');

const toBytes = (text) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0));
