// Calls of functions by SmolLM2, in Node, with and without a worker.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fresh } from '../support/install.mjs';

const MODEL = process.env.RELAMPAGO_MODEL ?? join(homedir(), '.cache/relampago/models/smollm2-135m.gguf');

for (const worker of ['false', 'true']) {
  test(`calls fit their schemas and go back with results, in a worker: ${worker}`, () => {
    const folder = fresh('llm-calls');
    const output = execFileSync('node', ['llm-calls-node.js', MODEL, worker], { cwd: folder, encoding: 'utf8' });
    const { text, whole, streamed, first, joined, reason, again, last, errors } = JSON.parse(output);
    assert.equal(text, '');
    assert.deepEqual(streamed, whole);
    const [call] = whole.tool_calls;
    assert.equal(whole.tool_calls.length, 1);
    assert.deepEqual(first, { name: 'weather', arguments: '' });
    assert.equal(joined, call.function.arguments);
    const { city, days } = JSON.parse(joined);
    assert.ok(city.length <= 20 && days >= 1 && days <= 7, joined);
    assert.match(call.id, /^[0-9A-Za-z]{9}$/);
    assert.equal(reason, 'tool_calls');
    if (again) {
      assert.deepEqual(again, { content: '', tool_calls: [{ index: 0, ...call }] });
    }
    assert.ok(last[0].length > 0 || last[1] === 'tool_calls', last);
    const expected = {
      choice: /^INVALID_ARGUMENT: `tool_choice` is .*a choice among `tools`$/,
      word: /^INVALID_ARGUMENT: `tool_choice` is "always", but must be `auto`/,
      name: /^INVALID_ARGUMENT: `tools` is 'a b', but must be functions with names/,
      list: /^INVALID_ARGUMENT: `tools` is {}, but must be an array of functions$/,
      schema: /^INVALID_ARGUMENT: `tools` is .*whose arguments are an object$/,
      call: /^INVALID_ARGUMENT: `tool_calls` is null, but must be JSON/,
      format: /^INVALID_ARGUMENT: `tool_format` is xml, but must be one of `hermes`/,
      variables: /^INVALID_ARGUMENT: `chat_template_kwargs` is messages, but must be other names$/,
      text: /^INVALID_ARGUMENT: `tools` is .*a conversation does$/,
      after: /^no error$/,
    };
    for (const [name, pattern] of Object.entries(expected)) {
      assert.match(errors[name], pattern, name);
    }
  });
}
