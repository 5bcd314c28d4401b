// Ordinary numbers, NaN, ±∞, −0 and other special values through every operation, on every path of the package.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { ENGINES, TITLES, launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { ran } from '../support/ran.mjs';
import { serve } from '../support/serve.mjs';
import { writeSpecialCases } from '../support/special.mjs';

const GPU = { policy: { elementwise: 0, transcendental: 0, reduction: 0, softmax: 0, matmul: 0, convolution: 0, movement: 0 }, backend: 'gpu' };
const DEVICES = {
  SIMD: { backend: 'simd' },
  WebGPU: GPU,
  'SIMD in a worker': { backend: 'simd', worker: true },
  'WebGPU in a worker': { ...GPU, worker: true },
  'SIMD with threads': { backend: 'simd', threads: 3 },
};

describe('special values', () => {
  let folder;
  let operations;
  let server;
  let browser;
  before(async () => {
    folder = fresh('special');
    writeSpecialCases(folder);
    ({ operations } = await import(pathToFileURL(join(folder, 'special-cases.js')).href));
    cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
    server = await serve(folder);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });

  test('in Node', () => {
    const output = execFileSync('node', ['special-node.js'], { cwd: folder, encoding: 'utf8' });
    verify(JSON.parse(output));
  });

  for (const [name, options] of Object.entries(DEVICES)) {
    test(`on ${name}`, async () => {
      verify(await visit(browser, options));
      ran(TITLES.chromium, 'special values');
    });
  }

  for (const engine of ENGINES.filter((name) => name !== 'chromium')) {
    test(`on SIMD in ${engine}`, async () => {
      const other = await launch(engine);
      try {
        verify(await visit(other, DEVICES.SIMD));
        ran(TITLES[engine], 'special values');
      } finally {
        await other.close();
      }
    });
  }

  function verify({ right, wrong, operations: tried }) {
    assert.deepEqual(wrong, []);
    assert.equal(tried, operations);
    console.log(`${right} results of ${tried} operations are right`);
  }

  async function visit(browser, options) {
    const query = new URLSearchParams({ options: JSON.stringify(options) });
    return (await outcome(browser, `${server.url}/special.html?${query}`)).result;
  }
});
