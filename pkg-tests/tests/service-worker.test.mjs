// Service workers: scripts cannot be imported there once they run, and there are no workers.

import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ENGINES, TITLES, launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { ran } from '../support/ran.mjs';
import { serve } from '../support/serve.mjs';
import { verifyOps } from '../support/verify.mjs';

const ENTRIES = ['index.js', 'static.js'];

let server;
before(async () => {
  const folder = fresh('service-worker');
  cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
  const source = readFileSync(join(folder, 'service-worker.js'), 'utf8');
  ENTRIES.forEach((entry, i) => {
    writeFileSync(join(folder, `service-worker-${i}.js`), source.replace('relampago/index.js', `relampago/${entry}`));
  });
  server = await serve(folder);
});
after(() => server?.close());

for (const engine of ENGINES) {
  describe(`service worker in ${engine}`, () => inEngine(engine));
}

function inEngine(engine) {
  let browser;
  before(async () => {
    browser = await launch(engine);
  });
  after(() => browser?.close());
  // Only Chromium is sure to have a GPU.
  const hasGpu = engine === 'chromium';

  /** What a worker with this entry does with a back-end. */
  async function run(entry, backend) {
    const query = new URLSearchParams({ script: `service-worker-${ENTRIES.indexOf(entry)}.js`, backend });
    return (await outcome(browser, `${server.url}/service-worker.html?${query}`)).result;
  }

  for (const entry of ENTRIES) {
    for (const backend of hasGpu && entry.endsWith('static.js') ? ['gpu', 'simd'] : ['simd']) {
      test(`${entry} on ${backend}`, async () => {
        const result = await run(entry, backend);
        assert.equal(result.failure, undefined);
        assert.equal(result.backend, backend === 'gpu' ? 'webgpu' : 'simd');
        verifyOps(result.ops);
        assert.deepEqual(result.refused, ['UNSUPPORTED', 'UNSUPPORTED']);
        assert.match(result.message, /no worker could be started: .*import/);
        ran(TITLES[engine], 'service worker', { version: browser.version() });
      });
    }
  }

  if (hasGpu) {
    test('index.js names the entry that has the shaders', async () => {
      assert.match((await run('index.js', 'gpu')).failure, /relampago\/static/);
    });
  }
}
