// Adapters, sessions, embeddings and probabilities of language models, in Node and in Chromium.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { writeTinyModel } from '../support/tiny-model.mjs';
import { unbundled } from '../support/unbundled.mjs';

describe('adapters and sessions of relampago/llm', () => {
  let folder;
  let site;
  let native;
  let browser;
  before(async () => {
    folder = fresh('llm-adapters');
    native = writeTinyModel(folder);
    site = unbundled(folder, 'llm', ['llm.js', 'tiny.gguf', 'tiny-lora.gguf']);
    browser = await launch();
  });
  after(() => browser?.close());

  test('in node', () => {
    const output = execFileSync('node', ['llm-node.js', 'deeper', 'tiny.gguf', 'tiny-lora.gguf'], { cwd: folder, encoding: 'utf8' });
    verify(JSON.parse(output), native);
  });

  for (const query of [{ worker: 'true' }, { worker: 'false' }, { device: 'gpu' }]) {
    test(`on a page with ${JSON.stringify(query)}`, async () => {
      const server = await serve(site);
      try {
        const { result } = await outcome(browser, `${server.url}/llm.html?deeper&${new URLSearchParams(query)}`);
        verify(result, native);
      } finally {
        server.close();
      }
    });
  }
});

function assertClose(values, exact, what) {
  assert.equal(values.length, exact.length, what);
  const size = Math.sqrt(exact.reduce((sum, x) => sum + x * x, 0) / exact.length);
  values.forEach((value, i) => assert.ok(Math.abs(value - exact[i]) <= 1e-3 * size, `${what}[${i}]: ${value}, natively ${exact[i]}`));
}

function verify(result, native) {
  assert.equal(result.layers, 14);
  assert.equal(result.plain, native.text);
  assert.equal(result.again, native.text);
  assert.equal(result.adapted, native.adapted);
  assertClose(result.logits, native.logits, 'logits');
  assertClose(result.vector, native.vector, 'vector');
  assert.deepEqual(result.loaded, [257, 108, 111]);
  assert.deepEqual(result.forked, [257, 108, 111, 1]);
  assert.equal(result.afterReload, native.adapted);
  assert.match(result.sessions.adapters, /^INVALID_ARGUMENT: there is no option `lora`; there are `max_tokens`, /);
  assert.match(result.sessions.long, /^LIMIT_EXCEEDED: the number of tokens in the context is \d+, beyond the limit of 64$/);
  assert.match(result.sessions.schema, /^INVALID_ARGUMENT: /);
  const { first, adapters, long, schema } = result.sessions;
  assert.deepEqual(result.sessions, {
    first,
    adapters,
    long,
    schema,
    isKept: true,
    order: '0,1',
    closed: true,
    finish_reason: 'length',
    hasAnswer: true,
    same: true,
    refused: 'INVALID_ARGUMENT: `top_p` is 2, but must be from 0 to 1',
    isWhole: true,
    removed: '5,8,9',
    range: 'INVALID_ARGUMENT: `range` is 2..3, but must be ascending and before the last of 3 tokens',
    afterReload: true,
    disposed: 'DISPOSED: this Session was disposed of: make a new one',
  });
  for (const holds of ['rewound', 'same', 'otherToken', 'continued', 'sessionAfterReload']) {
    assert.equal(result[holds], true, holds);
  }
  assert.equal(result.logprobs.length, 2);
  const best = Math.max(...native.logits);
  const total = native.logits.reduce((sum, x) => sum + Math.exp(x - best), 0);
  result.logprobs.forEach(({ id, token, logprob, top_logprobs: [first, second] }, i) => {
    assert.equal(id, result.ids[i]);
    assert.equal(token, result.words[i]);
    assert.deepEqual(first, { id, token, logprob });
    assert.ok(second.logprob <= logprob);
  });
  assert.ok(Math.abs(result.logprobs[0].logprob + Math.log(total)) < 1e-3);
  assert.deepEqual(result.resumed, { tokens: 3, completion_tokens: 3, logprobs: 1, tokens_per_second: null });
  assert.deepEqual(result.ended, ['', true]);
  assert.match(result.json, /^\{\s*"ready"\s*:\s*(true|false)\s*\}$/);
  const { errors } = result;
  assert.match(errors.schema, /^INVALID_ARGUMENT: .*but must be valid: /);
  assert.match(errors.oneOf, /oneOf constraints are not supported.*\(`"x-guidance": \{ "coerce_one_of": true \}` in the schema\)$/);
  assert.match(errors.cyclic, /^INVALID_ARGUMENT: `response_format.json_schema.schema` is no JSON: /);
  for (const matched of ['schema', 'oneOf', 'cyclic']) {
    delete errors[matched];
  }
  assert.match(errors.noAdapter, /^INVALID_MODEL: .*it is missing, but must be `adapter`/);
  assert.match(errors.otherAdapters, /^INVALID_MODEL: .*with other adapters/);
  delete errors.noAdapter;
  delete errors.otherAdapters;
  assert.deepEqual(result.stacks, { method: true, answer: true, session: true });
  assert.match(errors.embedded, /^LIMIT_EXCEEDED: `texts\[1\]`: the number of tokens in the context is \d+, beyond the limit of 64$/);
  delete errors.embedded;
  assert.deepEqual(errors, {
    after: 'INVALID_ARGUMENT: `after` is 260, but must be token ids below 260',
    promised: 'INVALID_ARGUMENT: `source` is a Promise that was not awaited, but must be a URL, a File, a Blob, an ArrayBuffer or a Uint8Array',
    noSource: 'INVALID_ARGUMENT: `source` is undefined, but must be given again: the bytes that the model was loaded from are not kept',
    format: "INVALID_ARGUMENT: `response_format.type` is 'xml', but must be 'text', 'json_object' or 'json_schema'",
    keyword: "INVALID_ARGUMENT: `json_schema` is a schema with the keyword `maxlength`, but must be made of JSON Schema's keywords",
    beside: 'INVALID_ARGUMENT: `response_format`: there is no option `schema`; there are `type`',
    role: "INVALID_ARGUMENT: `role` is 'user<|im_end|>', but must be made of letters, digits, `_` and `-`",
    bias: "INVALID_ARGUMENT: `logit_bias` is 'none', but must be an object of numbers by token id",
    biasBeyond: 'INVALID_ARGUMENT: `logit_bias` is 260, but must be token ids below 260',
    top: 'INVALID_ARGUMENT: `top_logprobs` is 2, but must be given with `logprobs: true`',
    full: errors.full,
    rewind: errors.rewind,
    pooling: "INVALID_ARGUMENT: `pooling` is 'max', but must be 'mean', 'last' or 'cls'",
    noLora: 'INVALID_ARGUMENT: `lora[0]` is 5, but must be a Lora, or an object { lora, scale }',
    gone: 'DISPOSED: this Lora was disposed of: make a new one',
    closed: 'DISPOSED: this Session was disposed of: make a new one',
    foreign: 'FOREIGN: `lora[0]` belongs to another model: load it for this one',
    disposed: 'DISPOSED: this LanguageModel was disposed of: load it again',
  });
  assert.match(errors.full, /^LIMIT_EXCEEDED: the number of tokens in the context is \d+, beyond the limit of 64$/);
  assert.match(errors.rewind, /^INVALID_ARGUMENT: `length` is 70, but must be at most \d+$/);
}
