// Gradients of tensors in Node and in Chromium: beside differences, in trees, in compiled steps, and mistakes.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';

const PAGES = { SIMD: 'backend=simd', WebGPU: 'backend=gpu', 'SIMD in a worker': 'backend=simd&worker' };

/** The beginning of each message, in the order of `mistakes` in the app. */
const MISTAKES = [
  'SHAPE_MISMATCH gradients: the loss has shape [2], but must be one number',
  'INVALID_ARGUMENT gradients: the loss has no recorded operations',
  'INVALID_ARGUMENT gradients: `withRespectTo` has 1, but must be a tensor, or arrays and objects of tensors',
  'INVALID_ARGUMENT gradients: `withRespectTo` contains itself',
  'FOREIGN gradients: `withRespectTo` is a tensor of another device',
  'INVALID_ARGUMENT gradients: `a tensor` of shape [1] has the type u32',
  'INVALID_ARGUMENT gradients: `the loss` of shape [] has the type u32',
  'INVALID_ARGUMENT gradients: `f` is 5, but must be a function of tensors',
  'INVALID_ARGUMENT gradients: the function returned 1, but must return a tensor of one element',
  'SHAPE_MISMATCH gradients: the loss has shape [2], but must be one number',
  'SHAPE_MISMATCH crossEntropy: `labels` has shape [3], but must have [] or [2] for logits of shape [2]',
  'INVALID_ARGUMENT crossEntropy: `labels` has 2, but must have whole numbers from 0 to 1',
  'INVALID_ARGUMENT adam: there is no option `lr`',
  "INVALID_ARGUMENT adam: `b1` is '0.9', but must be a finite number",
  'EMPTY adam: `parameters` has no tensors',
  'SHAPE_MISMATCH adam: `gradients` has the shapes [3], but must have those of the parameters: [2]',
  'INVALID_ARGUMENT adam: `state` is undefined, but must be',
];

/** The parameters after three steps of a rule, which gets each with its gradient, moments and the number of the step. */
function expected(rule) {
  const of = (start) => {
    let own = { p: start, m: 0, v: 0 };
    for (let step = 1; step <= 3; step++) {
      own = rule({ ...own, g: 2 * own.p }, step);
    }
    return own.p;
  };
  return [...[1, -2, 3].map(of), 3];
}

const adam = (decay) => ({ p, g, m, v }, step) => {
  const [first, second] = [0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g];
  const direction = first / (1 - 0.9 ** step) / (Math.sqrt(second / (1 - 0.999 ** step)) + 1e-8);
  return { p: p - 0.1 * (direction + decay * p), m: first, v: second };
};

const OPTIMIZERS = {
  sgd: expected(({ p, g }) => ({ p: p - 0.1 * g })),
  momentum: expected(({ p, g, m }) => {
    const moved = 0.9 * m + g + 0.5 * p;
    return { p: p - 0.1 * (g + 0.5 * p + 0.9 * moved), m: moved };
  }),
  adam: expected(adam(0)),
  adamw: expected(adam(0.5)),
  lion: expected(({ p, g, m }) => ({ p: p - 0.1 * Math.sign(0.9 * m + 0.1 * g), m: 0.99 * m + 0.01 * g })),
};

function verifyOptimizers({ after, clipped }) {
  for (const [name, wanted] of Object.entries(OPTIMIZERS)) {
    wanted.forEach((value, at) => assert.ok(Math.abs(after[name][at] - value) < 1e-4, `${name}: ${after[name]}, not ${wanted}`));
  }
  assert.deepEqual(clipped, [[1.5, 0], [2]]);
}

function verify(t, results) {
  const { differences, trees, training, mistakes } = results;
  t.diagnostic(`${differences.count} losses on ${results.backend}; a net's loss falls from ${training.first} to ${training.last}`);
  assert.deepEqual(differences.wrong, []);
  assert.deepEqual(trees, {
    value: 44,
    gradients: [[10, 14], [2], [22]],
    same: [22],
    outside: [4],
    unused: [0, 0, 0, 0],
    empty: 0,
    second: [30, 42],
    stopped: [5, 7],
  });
  assert.ok(training.first > 0.5 && training.last < 0.1, JSON.stringify(training));
  assert.equal(training.plannedLater, 0, 'a step plans nothing after the first');
  verifyOptimizers(results.optimizers);
  assert.equal(mistakes.length, MISTAKES.length);
  MISTAKES.forEach((start, at) => assert.ok(mistakes[at].startsWith(start), mistakes[at]));
}

test('gradients in Node', (t) => {
  const folder = fresh('gradients-node');
  const output = execFileSync('node', ['gradients-node.js'], { cwd: folder, encoding: 'utf8' });
  const results = JSON.parse(output);
  verify(t, results);
  assert.match(results.early[0], /^NOT_LOADED gradients: it needs `import 'relampago\/train'`/);
});

describe('gradients in Chromium', () => {
  let server;
  let browser;
  before(async () => {
    server = await serve(withPackage(fresh('gradients-page')));
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });
  for (const [name, query] of Object.entries(PAGES)) {
    test(name, async (t) => {
      const { result } = await outcome(browser, `${server.url}/gradients.html?${query}`);
      verify(t, result);
    });
  }
});

/** The folder, with the package where pages find it. */
function withPackage(folder) {
  cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
  const page = join(folder, 'gradients-page.js');
  writeFileSync(page, readFileSync(page, 'utf8').replace("'relampago'", "'./relampago/index.js'")
    .replace("'relampago/train'", "'./relampago/train/index.js'"));
  return folder;
}
