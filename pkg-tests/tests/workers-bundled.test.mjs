// Devices in workers and with threads, in what bundlers make of a page; and in Node.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { BUNDLERS } from '../support/bundlers.mjs';
import { fresh } from '../support/install.mjs';
import { open } from '../support/workers.mjs';

const PAGE = {
  html: 'workers.html',
  script: 'workers',
  entryPoints: { workers: 'workers-esbuild.js', relampago_worker: 'relampago/relampago_worker.js' },
};

for (const [name, build] of Object.entries(BUNDLERS)) {
  describe(`workers by ${name}`, () => {
    let pages;
    before(async () => {
      pages = await open(await build(fresh(`workers-${name}`), PAGE));
    });
    after(() => pages?.close());

    test('the whole application', async () => {
      const { result, requests } = await pages.run('same');
      assert.ok(result.agree);
      assert.equal(requests.filter((url) => url.endsWith('.wasm')).length, 1);
    });

    test('threads, on the page and in a worker', async () => {
      assert.deepEqual((await pages.run('nested')).result, [768 * 768, 768 * 768]);
    });
  });
}

describe('workers in node', () => {
  test('are not supported', () => {
    const output = execFileSync('node', ['workers-node.js'], { cwd: fresh('workers-node'), encoding: 'utf8' });
    const unsupported = 'UNSUPPORTED: create: no worker could be started: Worker is not defined';
    assert.deepEqual(JSON.parse(output), [unsupported, unsupported, 'simd', 'simd']);
  });
});
