// Adapters that models learn: a tiny random model, and SmolLM2, in Node and in Chromium.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, describe, test } from 'node:test';
import { launch, outcome } from '../support/browser.mjs';
import { BUNDLERS } from '../support/bundlers.mjs';
import { writeSamples } from '../support/guide.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { writeTinyModel } from '../support/tiny-model.mjs';
import { unbundled } from '../support/unbundled.mjs';

const MODEL = process.env.RELAMPAGO_MODEL ?? join(homedir(), '.cache/relampago/models/smollm2-135m.gguf');
const repository = fileURLToPath(new URL('../../', import.meta.url));

/** The texts and the options of `losses_of_seeds_stay` in tests/llm/tune.rs, and its losses. */
const lines = readFileSync(join(repository, 'LICENSE-APACHE'), 'utf8').match(/.*\n/g);
const quarter = Math.floor(lines.length / 4);
const texts = [0, 1, 2, 3].map((part) => lines.slice(part * quarter, (part + 1) * quarter).join(''));
const tuning = { epochs: 2, learningRate: 1e-3, schedule: 'constant' };
const native = readFileSync(join(repository, 'tests/data/tuning/seeded.txt'), 'utf8').trim().split('\n').map(Number);

const PAGE = {
  html: 'tune.html',
  script: 'tune-page',
  entryPoints: {
    'tune-page': 'tune-esbuild.js',
    ...Object.fromEntries(['llm_worker', 'llm_threads', 'tune_worker', 'tune_threads'].map((name) => [name, `relampago/llm/${name}.js`])),
  },
  files: ['shared', 'tune', 'tune_shared'].flatMap((kind) => ['simd128', 'relaxed'].map((set) => `node_modules/relampago/llm/relampago_${kind}_${set}.wasm`)),
};

describe('model.tune of relampago/llm', () => {
  let folder;
  let site;
  let tiny;
  let browser;
  before(async () => {
    folder = fresh('llm-tune');
    tiny = writeTinyModel(folder).tuned;
    writeSamples('Language models', folder);
    site = unbundled(folder, 'tune', ['tune.js', 'tiny.gguf']);
    writeFileSync(join(site, 'tuning.json'), JSON.stringify({ texts, tuning }));
    symlinkSync(MODEL, join(site, 'model.gguf'));
    browser = await launch();
  });
  after(() => browser?.close());

  const inNode = (...args) => JSON.parse(execFileSync('node', ['tune-node.js', ...args], { cwd: folder, encoding: 'utf8' }));
  const inPage = async (query, { from = site, ...serving } = {}) => {
    const server = await serve(from, serving);
    try {
      return await outcome(browser, `${server.url}/tune.html?${new URLSearchParams(query)}`);
    } finally {
      server.close();
    }
  };

  for (const options of [{}, { threads: 1 }, { worker: true, threads: 2 }]) {
    test(`a tiny model in node with ${JSON.stringify(options)}`, () => {
      verifyTiny(inNode('taught', 'tiny.gguf', JSON.stringify(options)), tiny);
    });
  }

  for (const options of [{}, { threads: 1 }, { worker: false }, { device: 'gpu' }]) {
    test(`a tiny model on a page with ${JSON.stringify(options)}`, async () => {
      const { result, requests } = await inPage({ options: JSON.stringify(options) });
      verifyTiny(result, tiny, options.device === 'gpu');
      const modules = requests.filter((url) => url.endsWith('.wasm')).join();
      assert.match(modules, /relampago_tune_/);
      assert.equal(/tune_shared/.test(modules), options.threads !== 1 && options.device !== 'gpu');
    });
  }

  test('a tiny model on a page that shares no memory', async () => {
    const headers = ({ 'cross-origin-opener-policy': _, 'cross-origin-embedder-policy': __, ...own }) => own;
    const { result, requests } = await inPage({}, { headers });
    verifyTiny(result, tiny);
    assert.doesNotMatch(requests.join(), /shared/);
  });

  for (const [name, bundle] of Object.entries(BUNDLERS)) {
    test(`a tiny model on a page by ${name}`, async () => {
      const from = await bundle(folder, PAGE);
      cpSync(join(folder, 'tiny.gguf'), join(from, 'tiny.gguf'));
      const { result } = await inPage({}, { from });
      verifyTiny(result, tiny);
    });
  }

  test('SmolLM2 in node has the losses that it has natively', () => {
    verifyLosses(inNode('losses', MODEL, ...[texts, tuning, {}].map((value) => JSON.stringify(value))));
  });

  test('SmolLM2 on a page has the losses that it has natively', async () => {
    const { result } = await inPage({ losses: '', options: JSON.stringify({ device: 'simd' }) });
    verifyLosses(result);
  });
});

function verifyLosses({ losses, tokensPerSecond }) {
  console.log(`losses ${losses.map((loss) => loss.toFixed(5))}, natively ${native}; ${tokensPerSecond.toFixed()} tokens/s`);
  verifyClose(losses, native, 1e-3);
}

function verifyClose(values, exact, bound) {
  assert.equal(values.length, exact.length);
  values.forEach((value, i) => assert.ok(Math.abs(value - exact[i]) <= bound * exact[i], `${value}, natively ${exact[i]}`));
}

function verifyTiny({ errors, ...result }, native, isBrief = false) {
  assert.equal(result.isLora, true);
  assert.equal(result.layers, 14);
  assert.equal(result.targets, 7);
  verifyClose(result.losses, native.losses, 1e-3);
  verifyClose(result.heldBackLosses, native.heldBackLosses, 1e-3);
  assert.equal(result.again, result.plain);
  assert.deepEqual([result.adapted, result.inSession, ...result.ofFiles], Array(4).fill(native.text));
  verifySteps(result);
  if (!isBrief) {
    // Stopped after a step or two, it goes on to the same losses.
    assert.ok(result.begun < result.losses.length, `${result.begun} steps`);
    verifyClose(result.whole, result.losses, 1e-6);
    assert.ok(result.further < result.losses[0]);
    verifyErrors(errors);
  }
}

function verifySteps({ steps, losses, heldBackLosses }) {
  assert.deepEqual(steps.map(({ loss }) => loss), losses);
  assert.deepEqual(steps.map(({ step }) => step), losses.map((_, i) => i + 1));
  assert.deepEqual(steps.flatMap(({ heldBackLoss }) => heldBackLoss ?? []), heldBackLosses);
  steps.forEach(({ steps: all, learningRate, tokensPerSecond, secondsLeft }) => {
    assert.equal(all, losses.length);
    assert.ok(learningRate > 0 && learningRate <= 1e-2 && tokensPerSecond > 0 && secondsLeft >= 0);
  });
}

function verifyErrors({ range, unknown, layers, target, resume, diverged, ...errors }) {
  assert.match(range, /^INVALID_ARGUMENT: `layers` is 3, but must be an array of the first layer/);
  assert.match(unknown, /^INVALID_ARGUMENT: there is no option `learning_rate`; did you mean `learningRate`\?$/);
  assert.match(layers, /^INVALID_ARGUMENT: `layers` is 1\.\.3, but must be some of the 2 layers of the model$/);
  assert.match(target, /^INVALID_ARGUMENT: `targets` is lm_head, but must be some of q_proj, /);
  assert.match(resume, /^INVALID_MODEL: /);
  assert.match(diverged, /^INVALID_ARGUMENT: `learningRate` is .*, but must be smaller, or `alpha`: the loss is .* at step 0, and the norm of its gradients inf$/);
  assert.deepEqual(errors, {
    empty: errors.empty,
    example: 'INVALID_ARGUMENT: `examples[1]` is 5, but must be a text or an array of messages',
    nothing: 'INVALID_ARGUMENT: `example` is 1, whose first 256 tokens have none to learn, but must be one with an answer, or a text of several tokens',
    role: "INVALID_ARGUMENT: `role` is 'a b', but must be made of letters, digits, `_` and `-`",
    rank: 'INVALID_ARGUMENT: `rank` is 0, but must be from 1 to 1048576',
    rate: 'INVALID_ARGUMENT: `learningRate` is -1, but must be a positive number',
    held: 'INVALID_ARGUMENT: `heldBack` is 1, but must be at least 0 and below 1',
    schedule: "INVALID_ARGUMENT: `schedule` is 'cosin', but must be 'constant', 'linear' or 'cosine'",
    thrown: 'MINE: mine',
    aborted: 'ABORTED: aborted by the caller',
    abortedBefore: 'ABORTED: aborted by the caller',
    bytes: 'INVALID_ARGUMENT: `source` is undefined, but must be given again: the bytes that the model was loaded from are not kept',
    foreign: 'FOREIGN: `lora[0]` belongs to another model: load it for this one',
    disposed: 'DISPOSED: this LanguageModel was disposed of: load it again',
  });
  assert.match(errors.empty, /^EMPTY: /);
}
