// Everything from an iframe, the module's own sources included. The query names the source and the
// device's options.

import { realms } from './realms.js';

const { source, options } = Object.fromEntries(new URLSearchParams(location.search));

/** A window of its own realm. */
async function iframe() {
  const frame = document.createElement('iframe');
  const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
  frame.src = './empty.html';
  document.body.append(frame);
  await loaded;
  return frame.contentWindow;
}

async function run() {
  const relampago = await import('./relampago/index.js');
  const others = await Promise.all(['', 'numeric/', 'train/', 'ptx/'].map((name) => import(`./relampago/${name}index.js`)));
  const theirs = await iframe();
  const url = relampago.moduleUrl();
  const sources = {
    url: () => new theirs.URL(url),
    request: () => new theirs.Request(url),
    response: () => theirs.fetch(url),
    bytes: async () => new theirs.Uint8Array(await (await fetch(url)).arrayBuffer()),
    module: () => theirs.WebAssembly.compileStreaming(fetch(url)),
  };
  await relampago.default(sources[source]());
  return realms(relampago, theirs, others, JSON.parse(options));
}

globalThis.outcome = run();
