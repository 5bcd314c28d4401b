// Encoders in Node and in Chromium: ids and vectors beside the crate's, options and errors.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { writeEncoder } from '../support/tiny-model.mjs';
import { unbundled } from '../support/unbundled.mjs';

describe('encoders of relampago/llm', () => {
  let folder;
  let native;
  let browser;
  let server;
  before(async () => {
    folder = fresh('llm-encoders');
    native = writeEncoder(folder);
    server = await serve(unbundled(folder, 'llm', ['llm.js', 'encoder.gguf', 'encoder.json']));
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });

  test('in node', () => {
    verify(JSON.parse(execFileSync('node', ['llm-node.js', 'encoder'], { cwd: folder, encoding: 'utf8' })), native, true);
  });

  for (const query of [{ worker: 'true' }, { worker: 'false' }, { device: 'gpu' }]) {
    test(`on a page with ${JSON.stringify(query)}`, async () => {
      const { result } = await outcome(browser, `${server.url}/llm.html?encoder&${new URLSearchParams(query)}`);
      verify(result, native, !query.device);
    });
  }
});

function verify(result, { cases, vectors }, exact) {
  assert.deepEqual(result.ids, cases.map(({ ids }) => ids));
  assert.equal(result.vectors.length, vectors.length);
  result.vectors.forEach((vector, i) => {
    const cosine = vector.reduce((sum, x, j) => sum + x * vectors[i][j], 0);
    assert.ok(cosine > 0.99999, `vector ${i}: ${cosine}`);
  });
  if (exact) {
    assert.deepEqual(result.alone, result.vectors);
  }
  assert.equal(result.cut, true);
  assert.equal(result.truncated, 64);
  assert.deepEqual(result.none, []);
  const decoder = /^INVALID_ARGUMENT: `model` is bert, but must be one that continues texts: an encoder has only `embed` and `rank`/;
  const { long, dimensions, ...others } = result.errors;
  assert.match(long, /^LIMIT_EXCEEDED: `texts\[1\]`: the number of tokens in the context is 202, beyond the limit of 160/);
  assert.match(dimensions, /^INVALID_ARGUMENT: `dimensions` is 65, but must be from 1 to 64/);
  assert.deepEqual(Object.keys(others), ['chat', 'complete', 'rank', 'session']);
  const { rank, ...sessions } = others;
  assert.match(rank, /^INVALID_ARGUMENT: `texts\[0\]`: `model` is bert, but must be one that ranks texts/);
  for (const [name, message] of Object.entries(sessions)) {
    assert.match(message, decoder, name);
  }
}
