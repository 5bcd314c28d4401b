// Service workers in Chromium: scripts cannot be imported there once they run, and there are no workers.

import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { verifyOps } from '../support/verify.mjs';

const ENTRIES = ['index.js', 'static.js', 'full/index.js', 'full/static.js'];

describe('service worker', () => {
  let server;
  let browser;
  before(async () => {
    const folder = fresh('service-worker');
    cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
    const source = readFileSync(join(folder, 'service-worker.js'), 'utf8');
    ENTRIES.forEach((entry, i) => {
      writeFileSync(join(folder, `service-worker-${i}.js`), source.replace('relampago/index.js', `relampago/${entry}`));
    });
    server = await serve(folder);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });

  /** What a worker with this entry does with a back-end. */
  async function run(entry, backend) {
    const query = new URLSearchParams({ script: `service-worker-${ENTRIES.indexOf(entry)}.js`, backend });
    return (await outcome(browser, `${server.url}/service-worker.html?${query}`)).result;
  }

  for (const entry of ENTRIES) {
    for (const backend of entry.endsWith('static.js') ? ['gpu', 'simd'] : ['simd']) {
      test(`${entry} on ${backend}`, async () => {
        const result = await run(entry, backend);
        assert.equal(result.failure, undefined);
        assert.equal(result.backend, backend === 'gpu' ? 'webgpu' : 'simd');
        verifyOps(result.ops);
        assert.deepEqual(result.refused, ['UNSUPPORTED', 'UNSUPPORTED']);
        assert.match(result.message, /no worker could be started: .*import/);
      });
    }
  }

  for (const entry of ['index.js', 'full/index.js']) {
    test(`${entry} names the entry that has the shaders`, async () => {
      assert.match((await run(entry, 'gpu')).failure, /relampago\/static/);
    });
  }
});
