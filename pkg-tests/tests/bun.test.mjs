// Bun, which has no WebGPU.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { writeSamples } from '../support/guide.mjs';
import { freshHost, hostProgram, hostVersion } from '../support/install.mjs';
import { ran } from '../support/ran.mjs';
import { verify } from '../support/verify.mjs';

describe('bun', () => {
  const folder = freshHost('bun');
  const bun = (...args) => execFileSync(hostProgram('bun'), args, { cwd: folder, encoding: 'utf8' });

  test('the whole application on SIMD', () => {
    const results = JSON.parse(bun('node.js', 'simd'));
    verify(results, 'simd');
    ran('Bun', 'application', { version: hostVersion('bun'), ...results });
  });

  test('devices in workers, threads', () => {
    const { inWorker, agree } = JSON.parse(bun('cases-host.js', 'same', 'simd'));
    verify(inWorker, 'simd');
    assert.ok(agree);
    assert.deepEqual(JSON.parse(bun('cases-host.js', 'nested')), [768 * 768, 768 * 768]);
    ['devices in workers', 'threads'].forEach((what) => ran('Bun', what));
  });

  test('the guide', () => {
    writeSamples('Node, Deno and Bun', folder);
    assert.equal(bun('product.js'), 'simd 19 22 43 50\n');
    assert.equal(bun('product.cjs'), 'simd 19 22 43 50\n');
  });
});
