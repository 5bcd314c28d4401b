// Devices in workers and with threads, in what bundlers make of a page; and in Node.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { BUNDLERS } from '../support/bundlers.mjs';
import { fresh } from '../support/install.mjs';
import { ran } from '../support/ran.mjs';
import { verifyThreads } from '../support/threads.mjs';
import { open } from '../support/workers.mjs';

const PAGE = {
  html: 'workers.html',
  script: 'workers',
  entryPoints: {
    workers: 'workers-esbuild.js',
    relampago_worker: 'relampago/relampago_worker.js',
    relampago_threads: 'relampago/relampago_threads.js',
  },
  files: ['simd128', 'relaxed'].map((set) => `node_modules/relampago/relampago_shared_${set}.wasm`),
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
      const modules = new Set(requests.filter((url) => url.endsWith('.wasm')));
      assert.equal(modules.size, 2, 'the page\'s module and that of threads');
    });

    test('threads, on the page and in a worker', async () => {
      assert.deepEqual((await pages.run('nested')).result, [768 * 768, 768 * 768]);
    });
  });
}

describe('workers in node', () => {
  const folder = fresh('workers-node');
  const node = (script, ...args) => JSON.parse(execFileSync('node', [script, ...args], { cwd: folder, encoding: 'utf8' }));

  test('the whole application', () => {
    assert.ok(node('cases-host.js', 'same', 'simd').agree);
  });

  test('threads give the values of one thread', () => {
    verifyThreads(node('cases-host.js', 'threads'), true);
    ran('Node', 'devices in workers');
    ran('Node', 'threads');
  });

  test('a process ends though its devices do not', () => {
    assert.deepEqual(node('workers-node.js'), ['simd 1', 'simd 2', 'simd 1', 'simd 1']);
  });
});
