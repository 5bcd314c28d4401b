// The tests of one way to bring the package into a page: each page on WebGPU and on SIMD.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { TITLES, launch, outcome } from './browser.mjs';
import { fresh } from './install.mjs';
import { ran } from './ran.mjs';
import { serve } from './serve.mjs';
import { verifyViews } from './verify-views.mjs';
import { verify } from './verify.mjs';

const PAGES = ['index.html', 'worker.html'];
/** The instruction sets of the WebAssembly modules that engines should load. */
const MODULES = { chromium: 'relaxed', firefox: 'relaxed', webkit: 'simd128' };

// `build` turns a fresh project folder into a folder to serve.
// `module` is the instruction set of the WebAssembly module that the pages ask for; they choose one otherwise.
export function inBrowser(name, build, { pages = PAGES, module, engines = ['chromium'] } = {}) {
  describe(name, () => {
    let server;
    before(async () => {
      server = await serve(await build(fresh(name)));
    });
    after(() => server?.close());
    for (const engine of engines) {
      describe(engine, () => inEngine(engine, name, () => server.url, { pages, module }));
    }
  });
}

function inEngine(engine, name, site, { pages, module }) {
  let browser;
  before(async () => {
    browser = await launch(engine);
  });
  after(() => browser?.close());
  for (const page of pages) {
    for (const backend of ['gpu', 'simd']) {
      test(`${page} on ${backend}`, async () => {
        const visit = outcome(browser, `${site()}/${page}?backend=${backend}`);
        if (backend === 'gpu' && engine !== 'chromium' && (await failsWithoutGpu(visit))) {
          return; // `choice` in workers-cases.js finds out whether there is none.
        }
        const { result, requests } = await visit;
        (page === 'views.html' ? verifyViews : verify)(result, backend);
        verifyRequests(requests, site(), module ?? MODULES[engine]);
        ran(TITLES[engine], name, { version: browser.version(), ...result });
      });
    }
  }
}

const failsWithoutGpu = (visit) => visit.then(() => false, ({ message }) => /RelampagoError: create: no GPU: /.test(message));

// Nothing from another site, and one module only, beside that of threads.
function verifyRequests(requests, origin, module) {
  const foreign = requests.filter((url) => !url.startsWith(origin) && !url.startsWith('data:') && !url.startsWith('blob:'));
  assert.deepEqual(foreign, []);
  const modules = requests.filter((url) => url.endsWith('.wasm') && !url.includes('_shared_'));
  assert.equal(modules.length, 1, `one module is loaded, not ${modules}`);
  assert.match(modules[0], new RegExp(module));
}
