// The tests of one way to bring the package into a page: each page on WebGPU and on SIMD.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { launch, outcome } from './browser.mjs';
import { fresh } from './install.mjs';
import { serve } from './serve.mjs';
import { verifyFull } from './verify-full.mjs';
import { verify } from './verify.mjs';

const PAGES = ['index.html', 'worker.html'];

// `build` turns a fresh project folder into a folder to serve.
// `module` is the instruction set of the WebAssembly module that the pages should load.
export function inBrowser(name, build, { pages = PAGES, module = 'relaxed' } = {}) {
  describe(name, () => {
    let server;
    let browser;
    before(async () => {
      server = await serve(await build(fresh(name)));
      browser = await launch();
    });
    after(async () => {
      await browser?.close();
      server?.close();
    });
    for (const page of pages) {
      for (const backend of ['gpu', 'simd']) {
        test(`${page} on ${backend}`, async () => {
          const { result, requests } = await outcome(browser, `${server.url}/${page}?backend=${backend}`);
          (page === 'full.html' ? verifyFull : verify)(result, backend);
          verifyRequests(requests, server.url, module);
        });
      }
    }
  });
}

// Nothing from another site, and one module only.
function verifyRequests(requests, origin, module) {
  const foreign = requests.filter((url) => !url.startsWith(origin) && !url.startsWith('data:') && !url.startsWith('blob:'));
  assert.deepEqual(foreign, []);
  const modules = requests.filter((url) => url.endsWith('.wasm'));
  assert.equal(modules.length, 1, `one module is loaded, not ${modules}`);
  assert.match(modules[0], new RegExp(module));
}
