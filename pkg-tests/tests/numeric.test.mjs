// Functions of `relampago/numeric` in Node, also with threads, and in Chromium: beside the figures of Rust's tests, their types,
// in compiled functions and scopes, their gradients, and mistakes.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, describe, test } from 'node:test';
import { launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';

const CASES = fileURLToPath(new URL('../../tests/data/numpy/cases.txt', import.meta.url));
const IN_NODE = { SIMD: { backend: 'simd' }, threads: { backend: 'simd', threads: 2 } };
const IN_A_PAGE = { SIMD: { backend: 'simd' }, WebGPU: { backend: 'gpu' }, 'SIMD in a worker': { backend: 'simd', worker: true } };

/** The beginning of each message, in the order of `mistakes` in the app. */
const MISTAKES = [
  'INVALID_ARGUMENT cumsum: `axis` is 2, but must be from -2 to 1 for shape [2, 3]',
  'INVALID_ARGUMENT cumsum: `axis` is undefined, but must be a whole number between',
  'INVALID_ARGUMENT cumsum: `axis` is 0.5, but must be a whole number between',
  "INVALID_ARGUMENT roll: `shift` is '1', but must be a whole number between",
  'SHAPE_MISMATCH pad: `sides` has 1 entries, but must have one for each axis of shape [2, 3]',
  'INVALID_ARGUMENT pad: `sides` is [1, 1], but must be an array of [before, after] for each axis',
  'INVALID_ARGUMENT pad: `padding` is 2 by reflection, but must be at most 1 for axis 0 of shape [2, 3]',
  "INVALID_ARGUMENT pad: `mode` is 'wrap', but must be 'constant', 'edge' or 'reflect'",
  'INVALID_ARGUMENT pad: there is no option `fill`; there are `mode`, `value`',
  'INVALID_ARGUMENT split: `count` is 2, but must be a number that divides the 3 elements of axis 1; indices make other parts',
  'INVALID_ARGUMENT split: `indices` is 4, but must be from 0 to 3, in ascending order',
  'INVALID_ARGUMENT tile: `counts` is -1, but must be a whole number from 0',
  'INVALID_ARGUMENT prod: `axes` is [0, 0], but must be without repetitions',
  'INVALID_ARGUMENT norm: `keepDims` is 1, but must be true or false',
  'FOREIGN modulo: `b` is a tensor of another device',
  'INVALID_ARGUMENT modulo: `b` is an array; make it a tensor',
  'SHAPE_MISMATCH hypot: `b` has shape [2], which does not broadcast with [2, 3] of `a`',
  'INVALID_ARGUMENT einsum: `labels` is `ij,jk`, but must be with 1 terms, one for each tensor',
  'INVALID_ARGUMENT einsum: `tensors` is an object (Tensor), but must be an array of tensors',
  'SHAPE_MISMATCH einsum: axes with the label `j` have 3 and 2 elements',
  'INVALID_ARGUMENT bincount: `elements` is 5 at position 1, but must be whole numbers from 0 and below 5',
  'INVALID_ARGUMENT scatterAdd: `indices` is 2 at position 0, but must be whole numbers from 0 and below 2',
  'SHAPE_MISMATCH scatterAdd: `source` has shape [2], which does not broadcast to [1, 3]',
  'INVALID_ARGUMENT histogram: `start` is 1, but must be below `end` (0)',
  'INVALID_ARGUMENT dropout: `rate` is 2, but must be from 0 to 1',
  'INVALID_ARGUMENT dropout: `seed` is -1, but must be a whole number from 0 to 2^53 - 1',
  'INVALID_ARGUMENT resize: `antialias` is true, but must be false for `nearest`',
  'INVALID_ARGUMENT maxPool: `window` is 2, but must be an array of whole numbers',
  'SHAPE_MISMATCH maxPool: a window of 3 elements does not fit into the 2 of axis 0 of shape [2, 3]',
  'INVALID_ARGUMENT avgPool: `padding` is 2, but must be at most half of a window of 2',
  'SHAPE_MISMATCH fft: shape [2, 3] must end in an axis of 2 elements, for complex numbers',
  'SHAPE_MISMATCH irfft: shape [2, 3] must end in an axis of 2 elements, for complex numbers',
  'SHAPE_MISMATCH stft: `window` has shape [2, 2], but must be a vector',
  'INVALID_ARGUMENT arange: `step` is 0, but must be a number other than 0',
  'INVALID_ARGUMENT arange: `end` is NaN, but must be a finite number',
  'LIMIT_EXCEEDED linspace: the number of elements is 1000000000, beyond the limit of 16777216',
  'INVALID_ARGUMENT eye: `cols` is -1, but must be a whole number from 0',
  'INVALID_ARGUMENT pad: the method was called without its tensor; call it as tensor.pad(…)',
  'INVALID_ARGUMENT flip: there are no options',
  'INVALID_ARGUMENT cumsum: there are no options',
  'INVALID_ARGUMENT bincount: `options` is an object (Tensor), but must be a plain object',
  'INVALID_ARGUMENT norm: there is no option `axis`; there are `p`, `keepDims`',
];

const RESULTS = {
  types: 'u32,bool,bool,u32,u32,u32,u32,u32,u32,f32,f32,f32,u32,f32',
  like: [[0, 0, 0], [1, 1, 1], [7, 7, 7]],
  range: [[0, 1, 2], [0, 0.1, 0.2].map(Math.fround), 0],
  eye: [[1, 0], [0, 1]],
  booleans: [[true, true, false], [false, true, true]],
  kept: [[1], [1], []],
  numbers: [[1, 0, 1], [1, 2, 3], [1, 2, 5], [6, 2, 3]],
  random: true,
  empty: [[0, 2], [1]],
  computed: [[1, 1], [1, 2, 13]],
};

const COMPILED = {
  recorded: 1,
  first: [
    [[3, 5], [4, 7], [7, 12], [8, 14]],
    [[0, 0], [1, 1], [2, 2], [3, 3]],
    [[5, 13], [13, 34]],
    [[[4, 0], [7, 0]], [[-2, 0], [-3, 0]]],
  ],
  wave: [[[6, 0], [9, 0]], [[-2, 0], [-3, 0]]],
};

function verify(t, { numpy, results: { dropped, ...results }, lifetimes, compiled, gradients, mistakes, backend }) {
  t.diagnostic(`${numpy.count} cases of NumPy, SciPy and PyTorch and ${gradients.count} losses on ${backend}`);
  assert.deepEqual(numpy.wrong, []);
  assert.ok(numpy.count > 250, `only ${numpy.count} cases`);
  assert.deepEqual(results, RESULTS);
  const [zeros, isSame, size] = dropped;
  assert.ok(zeros > 600 && zeros < 900 && isSame && size === 3, String(dropped));
  // Another seed, divisor or value plans nothing.
  assert.deepEqual(lifetimes, { still: [1, 2], scoped: [0, 1, 2, 3, 3000], planned: 3 });
  assert.deepEqual(compiled, COMPILED);
  assert.deepEqual(gradients.wrong, []);
  assert.equal(mistakes.length, MISTAKES.length);
  MISTAKES.forEach((start, at) => assert.ok(mistakes[at].startsWith(start), mistakes[at]));
  assert.deepEqual(mistakes.filter((message) => message.includes(', at ')), [], 'stacks begin at the call');
}

describe('functions by NumPy’s names in Node', () => {
  let folder;
  before(() => {
    folder = fresh('numeric-node');
    cpSync(CASES, join(folder, 'cases.txt'));
  });
  for (const [name, options] of Object.entries(IN_NODE)) {
    test(name, (t) => {
      const output = execFileSync('node', ['numeric-node.js', JSON.stringify(options)], { cwd: folder, encoding: 'utf8' });
      const results = JSON.parse(output);
      verify(t, results);
      const missing = (op) => `NOT_LOADED ${op}: it needs \`import 'relampago/numeric'\`, before GpuDevice.create()`;
      assert.deepEqual(results.early, ['cumsum', 'arange', 'einsum'].map(missing));
      // The import alone does not load the module.
      assert.deepEqual(results.late, results.early);
    });
  }
});

describe('functions by NumPy’s names in Chromium', () => {
  let server;
  let browser;
  before(async () => {
    server = await serve(withPackage(fresh('numeric-page')));
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });
  for (const [name, options] of Object.entries(IN_A_PAGE)) {
    test(name, async (t) => {
      const query = new URLSearchParams({ options: JSON.stringify(options) });
      const { result } = await outcome(browser, `${server.url}/numeric.html?${query}`);
      verify(t, result);
    });
  }
});

/** The folder, with the package where pages find it, and the cases. */
function withPackage(folder) {
  cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
  cpSync(CASES, join(folder, 'cases.txt'));
  const page = join(folder, 'numeric-page.js');
  const script = readFileSync(page, 'utf8').replace(/'relampago(\/\w+)?'/g, (_, entry = '') => `'./relampago${entry}/index.js'`);
  writeFileSync(page, script);
  return folder;
}
