// What another realm has made: an iframe's in browsers, a context's of node:vm in Node.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ENGINES, TITLES, launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { ran } from '../support/ran.mjs';
import { serve } from '../support/serve.mjs';

const IN_NODE = ['bytes', 'buffer', 'module', 'promise', 'thenable'];
const IN_A_PAGE = {
  url: { backend: 'simd' },
  request: { backend: 'gpu' },
  response: { backend: 'simd', threads: 2 },
  bytes: { backend: 'simd', worker: true },
  module: { backend: 'gpu', worker: true },
};

describe('another realm', () => {
  let folder;
  let server;
  before(async () => {
    folder = fresh('realms');
    cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
    server = await serve(folder);
  });
  after(() => server?.close());

  for (const source of IN_NODE) {
    test(`in Node, loaded from ${source}`, () => {
      const output = execFileSync('node', ['realms-node.js', source], { cwd: folder, encoding: 'utf8' });
      verify(JSON.parse(output));
    });
  }

  for (const engine of ENGINES) {
    describe(`in ${engine}`, () => {
      let browser;
      before(async () => {
        browser = await launch(engine);
      });
      after(() => browser?.close());
      for (const [source, own] of Object.entries(IN_A_PAGE)) {
        // Only Chromium is sure to have a GPU.
        const options = JSON.stringify(engine === 'chromium' ? own : { ...own, backend: 'simd' });
        test(`in a page, loaded from ${source}, on ${options}`, async () => {
          const query = new URLSearchParams({ source, options });
          verify((await outcome(browser, `${server.url}/realms.html?${query}`)).result);
          ran(TITLES[engine], 'other realms', { version: browser.version() });
        });
      }
    });
  }
});

function verify({ arrays, programs, views, signals, errors, kernel }) {
  assert.deepEqual(arrays, [], 'operations that differ');
  assert.deepEqual(programs, [true, [8, 0], [4, 2]]);
  assert.deepEqual(views, [[3, 4], 7, [528]]);
  assert.deepEqual(signals, ['ABORTED', 'no error', 'ABORTED', 'why']);
  assert.match(kernel, /softmax/);
  assert.deepEqual(errors, { recognised: Array(5).fill(true), brand: true, others: Array(5).fill(false) });
}
