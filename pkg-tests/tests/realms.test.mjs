// What another realm has made: an iframe's in Chromium, a context's of node:vm in Node.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';

const ENTRIES = { relampago: '', 'relampago/full': 'full/' };
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
  let browser;
  before(async () => {
    folder = fresh('realms');
    cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
    server = await serve(folder);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });

  for (const [entry, edition] of Object.entries(ENTRIES)) {
    for (const source of IN_NODE) {
      test(`${entry} in Node, loaded from ${source}`, () => {
        const output = execFileSync('node', ['realms-node.js', entry, source], { cwd: folder, encoding: 'utf8' });
        verify(JSON.parse(output), edition);
      });
    }

    for (const [source, options] of Object.entries(IN_A_PAGE)) {
      test(`${entry} in a page, loaded from ${source}, on ${JSON.stringify(options)}`, async () => {
        const query = new URLSearchParams({ folder: edition, source, options: JSON.stringify(options) });
        verify((await outcome(browser, `${server.url}/realms.html?${query}`)).result, edition);
      });
    }
  }
});

function verify({ arrays, programs, full, signals, errors, kernel }, edition) {
  assert.deepEqual(arrays, [], 'operations that differ');
  assert.deepEqual(programs, [true, [8, 0], [4, 2]]);
  assert.deepEqual(full, edition ? [[3, 4], 7, [528]] : undefined);
  assert.deepEqual(signals, ['ABORTED', 'no error', 'ABORTED', 'why']);
  assert.match(kernel, /softmax/);
  assert.deepEqual(errors, { recognised: Array(4).fill(true), brand: true, others: Array(5).fill(false) });
}
