// Devices in workers and with threads, in what bundlers make of a page; and in Node.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as esbuild from 'esbuild';
import * as vite from 'vite';
import webpack from 'webpack';
import { fresh } from '../support/install.mjs';
import { open } from '../support/workers.mjs';

const BUNDLERS = {
  // With nothing said of workers, the format of their scripts is Vite's choice.
  async vite(folder) {
    const build = { assetsInlineLimit: 0, rollupOptions: { input: join(folder, 'workers.html') } };
    await vite.build({ root: folder, logLevel: 'warn', build });
    return join(folder, 'dist');
  },

  async webpack(folder) {
    const dist = join(folder, 'dist');
    const stats = await promisify(webpack)({
      mode: 'production',
      context: folder,
      entry: { workers: './workers.js' },
      output: { path: dist, filename: '[name].js', chunkFilename: '[contenthash].js' },
      performance: false,
    });
    assert.equal(stats.toString({ all: false, errors: true, warnings: true }), '');
    copyFileSync(join(folder, 'workers.html'), join(dist, 'workers.html'));
    return dist;
  },

  // It leaves the worker's URL alone, so that script is one more entry point.
  async esbuild(folder) {
    const dist = join(folder, 'dist');
    await esbuild.build({
      absWorkingDir: folder,
      entryPoints: { workers: 'workers-esbuild.js', relampago_worker: 'relampago/relampago_worker.js' },
      outdir: dist,
      bundle: true,
      format: 'esm',
      logLevel: 'warning',
      loader: { '.wasm': 'file' },
      minify: true,
    });
    copyFileSync(join(folder, 'workers.html'), join(dist, 'workers.html'));
    return dist;
  },
};

for (const [name, build] of Object.entries(BUNDLERS)) {
  describe(`workers by ${name}`, () => {
    let pages;
    before(async () => {
      pages = await open(await build(fresh(`workers-${name}`)));
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
    const unsupported = 'UNSUPPORTED: no worker could be started: Worker is not defined';
    assert.deepEqual(JSON.parse(output), [unsupported, unsupported, 'simd', 'simd']);
  });
});
