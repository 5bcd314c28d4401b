// The entry for language models: a tiny random model, and SmolLM2, in Node and in Chromium.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { launch, outcome } from '../support/browser.mjs';
import { BUNDLERS } from '../support/bundlers.mjs';
import { writeSamples } from '../support/guide.mjs';
import { fresh } from '../support/install.mjs';
import { withTemplate, withoutTemplate, writeTinyModel } from '../support/tiny-model.mjs';
import { serve } from '../support/serve.mjs';
import { exact, requests } from '../support/smollm2.mjs';
import { unbundled } from '../support/unbundled.mjs';

const MODEL = process.env.RELAMPAGO_MODEL ?? join(homedir(), '.cache/relampago/models/smollm2-135m.gguf');

/** Lists in lists, more of them than may be. */
const NESTED = '{% set n=namespace() %}{% for c in range(200) %}{% set n.a=[n.a] %}{% endfor %}x';

const PAGE = {
  html: 'llm.html',
  script: 'llm-page',
  entryPoints: {
    'llm-page': 'llm-esbuild.js',
    llm_worker: 'relampago/llm/llm_worker.js',
    llm_threads: 'relampago/llm/llm_threads.js',
  },
  files: ['simd128', 'relaxed'].map((set) => `node_modules/relampago/llm/relampago_shared_${set}.wasm`),
};

/** The modules that pages of bundlers load; webpack gives them names of its own. */
const MODULES = {
  vite: /^[^,]*relampago_shared_relaxed[^,]*,[^,]*relampago_chat[^,]*$/,
  webpack: /^[^,]*\.wasm,[^,]*\.wasm$/,
  esbuild: /^[^,]*relampago_simd128[^,]*,[^,]*relampago_chat[^,]*,[^,]*relampago_shared_relaxed[^,]*$/,
};

const PARTS = [1, 2, 3].map((part) => `tiny-0000${part}-of-00003.gguf`);

describe('relampago/llm', () => {
  let folder;
  let plain;
  let native;
  let browser;
  before(async () => {
    folder = fresh('llm');
    native = writeTinyModel(folder);
    writeSamples('Language models', folder);
    plain = unbundled(folder, 'llm', ['llm.js', 'tiny.gguf', ...PARTS]);
    symlinkSync(MODEL, join(plain, 'model.gguf'));
    writeFileSync(join(plain, 'base.gguf'), withoutTemplate(readFileSync(join(folder, 'tiny.gguf'))));
    writeFileSync(join(plain, 'nested.gguf'), withTemplate(readFileSync(join(folder, 'tiny.gguf')), NESTED));
    browser = await launch();
  });
  after(() => browser?.close());

  const inNode = (...args) => JSON.parse(execFileSync('node', ['llm-node.js', ...args], { cwd: folder, encoding: 'utf8' }));
  const inPage = async (site, query) => {
    const server = await serve(site);
    try {
      return await outcome(browser, `${server.url}/llm.html?${new URLSearchParams(query)}`);
    } finally {
      server.close();
    }
  };

  for (const [options, worker, threads] of [[{}, false, 1], [{ threads: 2 }, true, 2], [{ worker: true, threads: 1 }, true, 1]]) {
    test(`a tiny model in node with ${JSON.stringify(options)}`, () => {
      const result = inNode('tiny', 'tiny.gguf', JSON.stringify(options));
      verifyTiny(result, native);
      assert.deepEqual([result.info.worker, result.info.threads], [worker, threads]);
      assert.equal(result.missing, 'FILE');
      assert.equal(result.gpu, 'NO_GPU');
    });
  }

  test('split files, inspections and explanations in node', () => {
    verifyFiles(inNode('files'), native, 'local');
  });

  for (const worker of ['true', 'false']) {
    test(`split files, inspections and explanations on a page, in a worker: ${worker}`, async () => {
      const { result } = await inPage(plain, { files: '', worker });
      verifyFiles(result, native, 'network');
    });
  }

  for (const worker of ['true', 'false']) {
    test(`a tiny model on a page, in a worker: ${worker}`, async () => {
      const { result } = await inPage(plain, { worker });
      verifyTiny(result, native);
      assert.equal(result.info.worker, worker === 'true');
    });
  }

  test('a tiny model on the GPU of a page, in software', async () => {
    const { result } = await inPage(plain, { device: 'gpu' });
    verifyTiny(result, native, 'gpu');
  });

  for (const [name, bundle] of Object.entries(BUNDLERS)) {
    test(`a tiny model on a page by ${name}`, async () => {
      const site = await bundle(folder, PAGE);
      cpSync(join(folder, 'tiny.gguf'), join(site, 'tiny.gguf'));
      const { result, requests } = await inPage(site, {});
      verifyTiny(result, native);
      assert.equal(result.info.worker, true);
      assert.match(requests.filter((url) => url.endsWith('.wasm')).join(), MODULES[name]);
    });
  }

  for (const worker of ['true', 'false']) {
    test(`chat templates and JSON schemas are loaded when they are needed, in a worker: ${worker}`, async () => {
      const { result } = await inPage(plain, { base: '', worker });
      const { before, after, ...others } = result;
      assert.deepEqual(others, {
        hasChatTemplate: false,
        text: native.text,
        chat: 'INVALID_ARGUMENT: `messages` is a conversation, but must be left out: the model has no chat template',
        json: ['{', '{'],
      });
      assert.match(before.join(), /^[^,]*relampago_(shared_)?relaxed\.wasm$/);
      assert.match(after.join(), /^[^,]*relampago_(shared_)?relaxed\.wasm,[^,]*relampago_chat\.wasm$/);
    });
  }

  test('a chat template that nests lists deeply is an error, for long conversations as well', async () => {
    const { result } = await inPage(plain, { nested: '' });
    assert.match(result.short, /^INVALID_MODEL: .* deeper than 100 levels/);
    const { short } = result;
    assert.deepEqual(result, { short, long: short, after: short, again: short, json: 'no error', text: 'no error' });
  });

  test('aborted requests end within a slice of a long prompt', () => {
    const { alone, whole, after, ...errors } = inNode('abortedPrompts', MODEL);
    console.log(`ms after an abort: ${JSON.stringify(after)}; the short request alone ${alone}, the long one ${whole}`);
    assert.deepEqual(errors, { answer: 'ABORTED: aborted by the caller', embedding: 'ABORTED: aborted by the caller' });
    for (const time of Object.values(after)) {
      assert.ok(time - alone < whole / 4, `${time} of ${whole} ms`);
    }
  });

  test('SmolLM2 in node', () => {
    verifySmollm2(inNode('answers', MODEL, JSON.stringify(requests)));
  });

  test("the guide's samples", () => {
    writeSamples('JavaScript', folder, 'language-models');
    symlinkSync(MODEL, join(folder, 'smollm2-135m.gguf'));
    const printed = (sample) => execFileSync('node', [sample], { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
    assert.equal(printed('answer.js'), exact[1].text);
    assert.match(printed('tools.js'), /^\{"city": "Paris", "days": 2\}tool_calls\n./);
    assert.equal(printed('teach.js'), 'Poseidonis.\n');
    assert.equal(printed('more.js'), '{"colour": "green"}\ntrue\n Paris Rome\n');
  });

  test('SmolLM2 on a page, which stays responsive', async () => {
    const { result } = await inPage(plain, { requests: JSON.stringify(requests) });
    verifySmollm2(result);
    assert.ok(result.longest < 1000, `the page could do nothing for ${result.longest} ms`);
  });
});

function verifyTiny(result, native, backend = 'simd') {
  for (const [source, text] of Object.entries(result.sources)) {
    assert.equal(text, native.text, source);
  }
  assert.equal(result.info.architecture, 'llama');
  assert.equal(result.info.backend, backend);
  assert.equal(result.info.contextLength, 64);
  assert.equal(result.info.hasChatTemplate, true);
  assert.equal(result.info.vocabulary, 260);
  assert.deepEqual(result.tokens.slice(0, 3), [257, 108, 111]);
  assert.equal(result.tokens.length, 13);
  assert.deepEqual(result.special, [257, 108, 111, 259]);
  assert.equal(result.text, 'hello<|im_end|>');
  assert.deepEqual(result.chat, native.chat);
  assert.deepEqual(result.openai, { parts: true, nothing: true, session: true, streams: [true, true], length: 3 });
  for (const holds of ['bytesStay', 'seeded', 'drawn', 'together', 'cancelledEarly', 'contentStays', 'usableAfter', 'isError']) {
    assert.equal(result[holds], true, holds);
  }
  assert.equal(result.reason, 'enough');
  assert.deepEqual(result.order, { last: 'answer', others: ['aborted', 'embedded', 'left'], done: true });
  assert.deepEqual(result.errors, {
    aborted: 'ABORTED: aborted by the caller',
    nearest: 'INVALID_ARGUMENT: there is no option `maxTokens`; did you mean `max_tokens`?',
    temperature: 'INVALID_ARGUMENT: `temperature` is -1, but must be 0 or larger',
    type: "INVALID_ARGUMENT: `temperature` is '1', but must be a finite number",
    prompt: 'INVALID_ARGUMENT: `prompt` is 5, but must be a string',
    messages: 'INVALID_ARGUMENT: `messages[0].content` is undefined, but must be a string or an array of text parts',
    nullContent: 'INVALID_ARGUMENT: `messages[0].content` is null, but must be a string or an array of text parts',
    image: "INVALID_ARGUMENT: `messages[1].content[1].type` is 'image_url', but must be 'text', the only type of parts that a model reads",
    part: 'INVALID_ARGUMENT: `messages[0].content[0].type` is undefined, but must be \'text\', the only type of parts that a model reads',
    partText: 'INVALID_ARGUMENT: `messages[0].content[0].text` is undefined, but must be a string',
    stream: "INVALID_ARGUMENT: `stream` is 'yes', but must be true or false",
    bothNames: 'INVALID_ARGUMENT: `max_completion_tokens` is 5, but must be given without `max_tokens`, which means the same',
    long: 'LIMIT_EXCEEDED: the number of tokens in the context is 65, beyond the limit of 64',
    empty: 'EMPTY: `complete` of an empty input is undefined: at least 1 value is needed',
    token: 'INVALID_ARGUMENT: `tokens` is -1, but must be a whole number from 0 to 4,294,967,295',
    halted: 'DISPOSED: this LanguageModel was disposed of: load it again',
    disposed: 'DISPOSED: this LanguageModel was disposed of: load it again',
    noModel: 'INVALID_MODEL: invalid model: the file does not begin with `GGUF`, at byte 0',
    short: result.errors.short,
    context: 'INVALID_ARGUMENT: `contextLength` is 10000, but must be from 1 to 256',
    device: "INVALID_ARGUMENT: `device` is 'cpu', but must be 'auto', 'gpu' or 'simd'",
    source: 'INVALID_ARGUMENT: `source` is 5, but must be a URL, a File, a Blob, an ArrayBuffer or a Uint8Array',
    loading: 'ABORTED: aborted by the caller',
  });
  assert.match(result.errors.short, /^INVALID_MODEL: invalid model: .* at /);
}

function verifyFiles(result, native, source) {
  for (const how of ['named', 'listed', 'mixed']) {
    assert.equal(result[how], native.text, how);
  }
  assert.equal(result.splitInfo.fileBytes, result.size);
  assert.equal(result.splitInfo.source, source);
  assert.equal(result.progress.first.total, undefined);
  assert.deepEqual(result.progress.last, { loaded: result.size, total: result.size });
  const { inspected, inspectedSplit, inspectedBytes, info, explained, errors } = result;
  for (const key of ['architecture', 'name', 'parameters', 'vocabulary', 'maxContextLength', 'contextLength', 'hasChatTemplate', 'fileBytes', 'sessionBytes']) {
    assert.equal(inspected[key], info[key], key);
  }
  assert.equal(inspected.simdBytes, info.fileBytes + info.sessionBytes);
  assert.ok(inspected.gpuBytes > inspected.sessionBytes);
  assert.ok(inspected.weightTypes.every(({ type, bytes }) => /^I?B?[QF]/.test(type) && bytes > 0));
  assert.equal(inspectedSplit.parameters, inspected.parameters);
  assert.equal(inspectedSplit.fileBytes, result.size);
  assert.deepEqual(inspectedSplit.weightTypes, inspected.weightTypes);
  assert.equal(inspectedBytes.contextLength, 256);

  const { backend, steps, weightBytes } = explained;
  assert.equal(backend, 'simd');
  assert.equal(weightBytes, steps.reduce((sum, step) => sum + step.weightBytes, 0));
  assert.deepEqual(steps[0].operations, ['gather_rows']);
  assert.equal(steps[0].layer, null);
  const down = steps.find(({ tensors }) => tensors.includes('blk.1.ffn_down.weight'));
  const { layer, operations, kernel, shape, weightType } = down;
  assert.deepEqual({ layer, operations, kernel, cols: shape.length }, { layer: 1, operations: ['matmul', 'add'], kernel: 'multiply_blocks', cols: 2 });
  assert.equal(typeof weightType, 'string');
  assert.equal(steps.find(({ kernel }) => kernel === 'attention').weightType, null);
  assert.deepEqual(errors, {
    order: 'INVALID_MODEL: invalid model: the file is part 3 of 3, at part 2 of 3',
    missing: "INVALID_MODEL: invalid model: the number of the model's parts is 3, but 2 are given, at part 1 of 2",
    first: 'INVALID_MODEL: invalid model: the file is part 2 of 3, at part 1 of 1',
    none: 'INVALID_ARGUMENT: `source` is an object (Array), but must be a model, or the parts of one',
    noModel: 'INVALID_MODEL: invalid model: the file does not begin with `GGUF`, at byte 0',
    context: 'INVALID_ARGUMENT: `contextLength` is 10000, but must be from 1 to 256',
    aborted: 'ABORTED: aborted by the caller',
    option: errors.option,
    explain: 'DISPOSED: this LanguageModel was disposed of: load it again',
  });
  assert.match(errors.option, /^INVALID_ARGUMENT: there is no option `device`/);
}

function verifySmollm2({ info, progress, results }) {
  assert.equal(info.fileBytes, 98_362_432);
  assert.deepEqual(progress.last, { loaded: 98_362_432, total: 98_362_432 });
  results.forEach((result, i) => {
    const { tokens, text, finish_reason } = exact[i];
    assert.deepEqual(result.tokens, tokens);
    assert.equal(result.finish_reason, finish_reason);
    assert.equal(result.text, text);
    assert.equal(result.joined, text);
    assert.ok(result.pieces > tokens.length / 2, `${result.pieces} pieces`);
    assert.equal(result.usage.completion_tokens, tokens.length);
    assert.ok(result.usage.time_to_first_token_ms > 0 && result.usage.tokens_per_second > 0);
  });
  const speeds = results.map(({ usage }) => `${usage.prompt_tokens} + ${usage.completion_tokens} tokens: first ${usage.time_to_first_token_ms.toFixed()} ms, then ${usage.tokens_per_second.toFixed(1)}/s`);
  console.log(`${info.instructionSet}\n${speeds.join('\n')}`);
}
