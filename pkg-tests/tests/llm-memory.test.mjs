// The memory of language models is flat: after many loads it is what it was after a few.

import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { launch } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { writeTinyModel } from '../support/tiny-model.mjs';
import { unbundled } from '../support/unbundled.mjs';

const FEW = 20;
const MANY = 200;
const GENERATIONS = 1000;

describe('memory of language models', () => {
  let folder;
  before(() => {
    folder = fresh('llm-memory');
    writeTinyModel(folder);
  });

  test('of the module that models share', async () => {
    const { LanguageModel } = await import(pathToFileURL(join(folder, 'node_modules/relampago/llm/node.js')));
    const bytes = readFileSync(join(folder, 'tiny.gguf'));
    let few;
    let last;
    for (let loads = 1; loads <= MANY; loads++) {
      const model = await LanguageModel.load(bytes);
      await model.complete('hello', { max_tokens: 1 }).text();
      last = await model.memoryBytes();
      few = loads === FEW ? last : few;
      model.dispose();
    }
    assert.equal(last, few);
  });

  test('of a thousand generations with an adapter, sessions and embeddings', async () => {
    const { LanguageModel } = await import(pathToFileURL(join(folder, 'node_modules/relampago/llm/node.js')));
    const model = await LanguageModel.load(readFileSync(join(folder, 'tiny.gguf')), { contextLength: 64 });
    const lora = await model.loadLora(join(folder, 'tiny-lora.gguf'));
    const sizes = new Map();
    for (let count = 1; count <= GENERATIONS; count++) {
      const options = { max_tokens: 8, temperature: 1, seed: count, lora: count % 2 ? lora : [], logprobs: true };
      await model.complete(`hello ${count % 7}`, options).text();
      if (count % 10 === 0) {
        await visitSession(model, lora);
      }
      sizes.set(count, await model.memoryBytes());
    }
    model.dispose();
    assert.equal(sizes.get(GENERATIONS), sizes.get(FEW));
  });

  test('of sessions that nobody has any more', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    const { LanguageModel } = await import(pathToFileURL(join(folder, 'node_modules/relampago/llm/node.js')));
    const model = await LanguageModel.load(readFileSync(join(folder, 'tiny.gguf')));
    const sizes = [await model.memoryBytes()];
    for (let round = 0; round < 6; round++) {
      for (let count = 0; count < 50; count++) {
        const session = await model.session();
        await session.prefill([1, 2, 3]);
      }
      await wait(10);
      collect();
      await wait(50);
      sizes.push(await model.memoryBytes());
    }
    await model.reload(join(folder, 'tiny.gguf'));
    model.dispose();
    // The collector chooses its moment, so a few sessions may live a round longer: four rounds that leak take
    // twice what the first two take.
    assert.ok(sizes.at(-1) - sizes[2] < (sizes[2] - sizes[0]) / 2, String(sizes));
  });

  const onLinux = { skip: process.platform !== 'linux' };
  test('of models in workers', onLinux, async () => {
    const server = await serve(unbundled(folder, 'llm-sources', ['llm-sources.js', 'tiny.gguf']));
    const browser = await launch();
    try {
      const page = await browser.newPage();
      await page.goto(`${server.url}/llm-sources.html`);
      await page.waitForFunction(() => Boolean(globalThis.visit));
      await page.evaluate(loads, FEW);
      const few = await residentBytes(browser);
      const module = await page.evaluate(loads, MANY - FEW);
      const many = await residentBytes(browser);
      console.log(`pages take ${few / 1e6} MB after ${FEW} loads, ${many / 1e6} MB after ${MANY}`);
      const leak = (MANY - FEW) * module;
      assert.ok(many - few < leak / 4, `${few} bytes after ${FEW} loads, ${many} after ${MANY}`);
    } finally {
      await browser.close();
      server.close();
    }
  });
});

describe('memory of a model on a GPU', () => {
  const path = process.env.RELAMPAGO_MODEL ?? join(homedir(), '.cache/relampago/models/smollm2-135m.gguf');
  let browser;
  let server;
  before(async () => {
    const folder = fresh('llm-memory-gpu');
    copyFileSync(path, join(folder, 'smollm2.gguf'));
    server = await serve(unbundled(folder, 'llm-sources', ['llm-sources.js', 'smollm2.gguf']));
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });

  /** Loads SmolLM2 in a page of its own, and lets it answer. */
  const answer = async (options, prepare = () => {}) => {
    const page = await browser.newPage();
    await page.goto(`${server.url}/llm-sources.html?patient`);
    await page.waitForFunction(() => Boolean(globalThis.visit));
    await page.evaluate(prepare);
    try {
      return await page.evaluate(async (options) => {
        const model = await globalThis.LanguageModel.load('smollm2.gguf', { ...options, cache: false, contextLength: 512 });
        const bytes = await model.memoryBytes();
        const text = await model.complete('The capital of France is', { max_tokens: 4 }).text();
        const { backend, reason } = model.info;
        return { bytes, text, backend, reason };
      }, options);
    } finally {
      await page.close();
    }
  };

  test('the module does not hold the file', async () => {
    const { bytes, text, backend } = await answer({ device: 'gpu' });
    assert.equal(backend, 'gpu');
    assert.match(text, /^ Paris/);
    console.log(`the module has ${bytes / 1e6} MB`);
    assert.ok(bytes < 0.65 * statSync(path).size, `${bytes} bytes`);
  });

  /** Has a page's GPU, which looks like hardware, refuse buffers of more than 8 MB. */
  const refuse = () => {
    for (const name of ['vendor', 'architecture', 'device', 'description']) {
      Object.defineProperty(GPUAdapterInfo.prototype, name, { get: () => 'hardware' });
    }
    Object.defineProperty(GPUAdapterInfo.prototype, 'isFallbackAdapter', { get: () => false });
    const { createBuffer } = GPUDevice.prototype;
    GPUDevice.prototype.createBuffer = function (descriptor) {
      return createBuffer.call(this, descriptor.size > 8e6 ? { ...descriptor, size: 2 ** 45 } : descriptor);
    };
  };

  test('a GPU that refuses a matrix is an error where a GPU is required', async () => {
    await assert.rejects(answer({ device: 'gpu', worker: false }, refuse), /the GPU refused the work|out of memory/);
  });

  test('a model that the GPU refuses runs on SIMD', async () => {
    const { text, backend, reason } = await answer({ device: 'auto', worker: false }, refuse);
    assert.match(text, /^ Paris/);
    assert.equal(backend, 'simd');
    assert.match(reason, /^the GPU cannot run this model: /);
  });
});

async function visitSession(model, lora) {
  const session = await model.session({ lora });
  await session.prefill([1, 2, 3]);
  const fork = await session.fork();
  await fork.save();
  fork.dispose();
  session.dispose();
  await model.embed('hello');
}

/** Loads a model `count` times, in the page; returns the bytes of the last one's module. */
async function loads(count) {
  const bytes = await (await fetch('tiny.gguf')).arrayBuffer();
  let module;
  for (let i = 0; i < count; i++) {
    const model = await globalThis.LanguageModel.load(bytes, { worker: true, device: 'simd' });
    await model.complete('hello', { max_tokens: 1 }).text();
    module = await model.memoryBytes();
    model.dispose();
  }
  return module;
}

/** The memory that the browser's pages take. What their scripts report takes a minute. */
async function residentBytes(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  const pages = processInfo.filter(({ type }) => type === 'renderer');
  const kilobytes = pages.map(({ id }) => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${id}/status`, 'utf8'))[1]));
  return kilobytes.reduce((sum, each) => sum + each * 1024, 0);
}
