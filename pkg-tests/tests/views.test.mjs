// Views, cached weights, custom operations and tuning, on pages and in Node.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { launch } from '../support/browser.mjs';
import { inBrowser } from '../support/in-browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { verifyChecks, verifyTuning } from '../support/tuning.mjs';
import { verifyViews } from '../support/verify-views.mjs';

const PAGES = ['views-page.js', 'tuning-page.js'];

/** The folder, with the package where pages find it. */
function withPackage(folder) {
  cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
  for (const page of PAGES.map((name) => join(folder, name))) {
    const source = readFileSync(page, 'utf8');
    writeFileSync(page, source.replace("'relampago'", "'./relampago/index.js'"));
  }
  return folder;
}

inBrowser('views and caches', withPackage, { pages: ['views.html'] });

describe('tuning, visit by visit', () => {
  for (const [name, verify] of [
    ['kernels that were measured are remembered', verifyTuning],
    ['checks of the GPU pass', verifyChecks],
  ]) {
    test(name, async () => {
      const server = await serve(withPackage(fresh('tuning')));
      const browser = await launch();
      try {
        await verify(await browser.newContext(), `${server.url}/tuning.html`);
      } finally {
        await browser.close();
        server.close();
      }
    });
  }
});

describe('views and caches in node', () => {
  test('on SIMD', () => {
    const folder = fresh('views-node');
    const output = execFileSync('node', ['views-node.js', 'simd'], { cwd: folder, encoding: 'utf8' });
    verifyViews(JSON.parse(output), 'simd');
  });
});

test('relampago/full is another name of relampago', () => {
  const script = `
    import * as full from 'relampago/full';
    import * as relampago from 'relampago';
    import * as own from './node_modules/relampago/full/index.js';
    const names = Object.keys(relampago);
    console.log(names.length, names.every((name) => [full, own].every((other) => name === 'default' || other[name] === relampago[name])));
  `;
  const folder = fresh('full');
  const output = execFileSync('node', ['--input-type=module', '-e', script], { cwd: folder, encoding: 'utf8' });
  assert.match(output, /^\d{2} true$/m);
});

test('newAsync is another name of create', () => {
  const script = `
    import init, { GpuDevice } from 'relampago';
    await init();
    const device = await GpuDevice.newAsync({ backend: 'simd' });
    console.log(device.backend, [...await device.relu(Float32Array.of(-1, 2))].join());
  `;
  const folder = fresh('new-async');
  const output = execFileSync('node', ['--input-type=module', '-e', script], { cwd: folder, encoding: 'utf8' });
  assert.equal(output.trim(), 'simd 0,2');
});
