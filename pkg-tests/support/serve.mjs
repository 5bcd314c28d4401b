// A static server with the policy of a strict production site.

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
  '.gguf': 'application/octet-stream',
};
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src 'self'; frame-src 'self'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
  'x-content-type-options': 'nosniff',
};

/** Collects a page's complaints where no protocol does; see `complaints.js`. */
const COLLECTOR = '/complaints.js';
const collector = readFile(fileURLToPath(new URL('./complaints.js', import.meta.url)));

/** Origin → the paths that were asked for. */
const requests = new Map();

export const requestsTo = (origin) => requests.get(origin) ?? [];

/**
 * Serves a folder. `headers` changes those of every answer; paths that end in one of `missing` are not there. `answer` may
 * answer a request instead, and then returns true.
 */
export function serve(folder, { headers = (own) => own, missing = [], answer } = {}) {
  return answering(async ({ pathname }) => {
    if ([missing].flat().some((end) => pathname.endsWith(end))) {
      return undefined;
    }
    const type = TYPES[extname(pathname)];
    return { headers: headers({ ...HEADERS, 'content-type': type }), body: await readFile(join(folder, normalize(pathname))) };
  }, answer);
}

/** Serves what `origin` does, under another port. */
export function relay(origin) {
  return answering(async ({ pathname, search }) => {
    const response = await fetch(new URL(pathname + search, origin));
    const { 'content-length': _, connection: __, ...headers } = Object.fromEntries(response.headers);
    return response.ok ? { headers, body: Buffer.from(await response.arrayBuffer()) } : undefined;
  });
}

async function answering(find, answer = () => false) {
  const paths = [];
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://localhost');
    paths.push(request.url);
    if (answer(request, response, url)) {
      return;
    }
    if (url.pathname === '/favicon.ico') {
      response.writeHead(204).end();
      return;
    }
    try {
      const isCollector = url.pathname === COLLECTOR;
      const { headers, body } = await (isCollector ? { headers: { ...HEADERS, 'content-type': TYPES['.js'] }, body: await collector } : find(url));
      const content = isHeard(request) ? body : withCollector(headers, body);
      // Progress of a download needs the length.
      response.writeHead(200, { ...headers, 'content-length': Buffer.byteLength(content) }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  requests.set(url, paths);
  return { url, close: () => server.close() };
}

/** Playwright hears Chromium's console. */
function isHeard(request) {
  return /Chrome/.test(request.headers['user-agent']);
}

function withCollector(headers, body) {
  return headers['content-type'] === TYPES['.html'] ? String(body).replace(/<meta charset[^>]*>/, `$&<script src="${COLLECTOR}"></script>`) : body;
}
