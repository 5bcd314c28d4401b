// Deno, whose WebGPU is wgpu's: llvmpipe on a machine without a GPU.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { writeSamples } from '../support/guide.mjs';
import { freshHost, hostProgram, hostVersion } from '../support/install.mjs';
import { ran } from '../support/ran.mjs';
import { verify } from '../support/verify.mjs';

describe('deno', () => {
  const folder = freshHost('deno');
  const deno = (...args) =>
    execFileSync(hostProgram('deno'), ['run', '-A', '--no-prompt', '--unstable-webgpu', ...args], { cwd: folder, encoding: 'utf8' });

  for (const backend of ['gpu', 'simd']) {
    test(`the whole application on ${backend}`, () => {
      const results = JSON.parse(deno('node.js', backend));
      verify(results, backend);
      ran('Deno', 'application', { version: hostVersion('deno'), ...results });
    });
  }

  test('devices in workers, with one thread', () => {
    const { inWorker, agree } = JSON.parse(deno('cases-host.js', 'same', 'simd'));
    verify(inWorker, 'simd');
    assert.ok(agree);
    assert.deepEqual(JSON.parse(deno('cases-host.js', 'nested')), [768 * 768, 768 * 768]);
    ran('Deno', 'devices in workers');
  });

  test('the guide', () => {
    writeSamples('Node, Deno and Bun', folder);
    assert.match(deno('product.js'), /^(simd|webgpu) 19 22 43 50\n$/);
  });
});
