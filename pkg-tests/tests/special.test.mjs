// NaN, ±∞, −0 and other special values through every operation, on every path of the package.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { writeSpecialCases } from '../support/special.mjs';

// Of the op table, but for those that the small edition has not.
const EDITIONS = [
  { entry: 'relampago', folder: '', operations: 36 },
  { entry: 'relampago/full', folder: 'full/', operations: 39 },
];
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
  let server;
  let browser;
  before(async () => {
    folder = fresh('special');
    writeSpecialCases(folder);
    cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
    server = await serve(folder);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });

  for (const { entry, folder: edition, operations } of EDITIONS) {
    test(`${entry} in Node`, () => {
      const output = execFileSync('node', ['special-node.js', entry], { cwd: folder, encoding: 'utf8' });
      verify(JSON.parse(output), operations);
    });

    for (const [name, options] of Object.entries(DEVICES)) {
      test(`${entry} on ${name}`, async () => {
        const query = new URLSearchParams({ folder: edition, options: JSON.stringify(options) });
        const { result } = await outcome(browser, `${server.url}/special.html?${query}`);
        verify(result, operations);
      });
    }
  }
});

function verify({ right, wrong, operations }, expected) {
  assert.deepEqual(wrong, []);
  assert.equal(operations, expected);
  console.log(`${right} results of ${operations} operations are right`);
}
