// Tensors in Node and in Chromium, beside an oracle in doubles: random cases, mistakes, planning and memory.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';

const NODE_CASES = 8000;
const PAGES = [
  { name: 'SIMD', query: 'backend=simd', cases: 600 },
  { name: 'WebGPU', query: 'backend=gpu', cases: 150 },
  { name: 'SIMD in a worker', query: 'backend=simd&worker', cases: 300 },
];

/** The beginning of each message, in the order of `mistakes` in the app. */
const MISTAKES = [
  'SHAPE_MISMATCH add: `b` has shape [3, 2], which does not broadcast with [2, 3] of `a`',
  'SHAPE_MISMATCH matmul: `b` has shape [2, 3], but must have 3 rows',
  'INVALID_ARGUMENT sum: `axis` is 2, but must be from -2 to 1 for shape [2, 3]',
  'INVALID_ARGUMENT sum: `axis` [0, -2] names an axis twice',
  'SHAPE_MISMATCH reshape: shape [2, 3] of 6 elements does not divide into [4, -1]',
  'SHAPE_MISMATCH reshape: [7] has 7 elements',
  'INVALID_ARGUMENT permute: `axes` is [0, 0]',
  'INVALID_ARGUMENT slice: range 0 is [0, 5], but axis 0 has 2 elements',
  'INVALID_ARGUMENT slice: index 2 is not on axis 0',
  'SHAPE_MISMATCH concat: tensor 1 has shape [2, 2]',
  'INVALID_ARGUMENT gather: `indices` has 2, but must have whole numbers from 0 to 1',
  'INVALID_ARGUMENT topK: `k` is 4, but the last axis of shape [2, 3] has 3 elements',
  'SHAPE_MISMATCH broadcastTo: shape [2, 3] does not broadcast to [3]',
  'SHAPE_MISMATCH layerNorm: `gain` has shape [2], but must have [3]',
  'SHAPE_MISMATCH conv2d: shapes [2, 3] and [2, 3] of `weights`',
  'INVALID_ARGUMENT clip: `min` is 2',
  'EMPTY max: there is no element along axis [0] of shape [0]',
  'SHAPE_MISMATCH tensor: there are 3 values, but shape [2, 2] has 4',
  'SHAPE_MISMATCH tensor: an array of axis 1 has 1 elements',
  'LIMIT_EXCEEDED zeros: shape [1, 1, 1, 1, 1, 1, 1] has 7 axes',
  'INVALID_ARGUMENT add: `b` is a Promise that was not awaited, but must be a Tensor or a number',
  'INVALID_ARGUMENT add: `b` is a DeviceBuffer',
  'INVALID_ARGUMENT add: `b` is an array',
  "INVALID_ARGUMENT add: `b` is '1', but must be a Tensor or a number",
  'FOREIGN add: `b` is a tensor of another device',
  'DISPOSED add: `b` was disposed of',
  'INVALID_ARGUMENT Tensor: a tensor is no number',
  'INVALID_ARGUMENT sum: there is no option `keepdims`; did you mean `keepDims`?',
  'INVALID_ARGUMENT sum: there is no option `axis`; there are `keepDims`',
  'INVALID_ARGUMENT reshape: `shape` is 3, but must be an array of numbers',
  'INVALID_ARGUMENT sum: `keepDims` is 1, but must be true or false',
  'INVALID_ARGUMENT sum: `options` is true, but must be an object',
  'INVALID_ARGUMENT conv2d: there is no option `strides`; did you mean `stride`?',
  'INVALID_ARGUMENT add: `b` is a function; call it',
  'INVALID_ARGUMENT add: `b` is an image; make it a tensor with device.fromImage(image)',
  'INVALID_ARGUMENT add: the method was called without its tensor; call it as tensor.add(…)',
  'INVALID_ARGUMENT zeros: the method was called without its device; call it as device.zeros(…)',
  'INVALID_ARGUMENT tensor: element 1 is 16777217, but f32 has all whole numbers only up to 16777216',
  'INVALID_ARGUMENT uniform: `min` is 1, but must be below `max` (1)',
  'INVALID_ARGUMENT normal: `seed` is -1',
  'INVALID_ARGUMENT normal: `deviation` is -1, but must be at least 0',
  'SHAPE_MISMATCH fromImage: `data` has 3 bytes, but 1 × 1 pixels of 4 channels need 4',
  'INVALID_ARGUMENT fromImage: `image` is a Promise that was not awaited, but must be an ImageData',
  "INVALID_ARGUMENT fromImage: `layout` is 'rgb', but must be 'pixels' or 'planes'",
  'INVALID_ARGUMENT tensor: element 1 is undefined, but must be a number',
  'INVALID_ARGUMENT gather: element 0 is undefined, but must be a number',
  'SHAPE_MISMATCH tensor: an array of axis 1 has 1 elements, but the first one has 2',
  'SHAPE_OVERFLOW zeros: shape [1000000000] has 1000000000 elements, but at most 536870911 are possible',
  'SHAPE_OVERFLOW vecAdd: shape [30000, 30000] has 900000000 elements',
  'INVALID_ARGUMENT tensor: `values` is an object (Float32Array), but must be within its buffer, which was detached',
  'INVALID_ARGUMENT tensor: `values` is an object (Uint32Array), but must be within its buffer, which was detached',
  'INVALID_ARGUMENT fromImage: `data` is an object (Uint8Array), but must be within its buffer, which was detached',
  'INVALID_ARGUMENT reshape: `shape[1]` is 2n, but must be a whole number',
  'INVALID_ARGUMENT reshape: `shape[1]` is Symbol(2), but must be a whole number',
  'INVALID_ARGUMENT slice: range 0 is [Symbol(0), 2], but axis 0 has 2 elements',
  'INVALID_ARGUMENT slice: range 0 is [0, 2, 1, 9], but must be [start, end, step]',
  'INVALID_ARGUMENT conv2d: `dilation` is 9007199254740991, but must be at most 4294967295',
  'LIMIT_EXCEEDED conv2d: a dilated kernel has [2147483649, 2147483649] rows and columns, but at most 1073741824',
  'LIMIT_EXCEEDED topK: the last axis of shape [1, 16777217] has 16777217 elements, but at most 16777216',
  'LIMIT_EXCEEDED stack: shape [1, 1, 1, 1, 1, 1, 1] has 7 axes',
  'INVALID_ARGUMENT gather: `indices` has 1.5, but must have whole numbers from 0 to 1',
  'INVALID_ARGUMENT gather: `indices` has 7, but must have whole numbers from 0 to 1',
  'INVALID_ARGUMENT gather: `indices` has -1, but must have whole numbers from 0 to 1',
  'EMPTY gather: axis 0 of shape [0, 2] has no elements',
  'INVALID_ARGUMENT oneHot: `this` has 7, but must have whole numbers from 0 to 2',
  'INVALID_ARGUMENT oneHot: `this` has 0.5, but must have whole numbers from 0 to 2',
  'INVALID_ARGUMENT conv2d: `padding` is 3 by reflection, but must be at most 2 for axis 2 of shape [1, 1, 3, 3]',
  'INVALID_ARGUMENT topK: `k` is 9, but the last axis of shape [2, 3] has 3 elements',
  'INVALID_ARGUMENT slice: range 1 is [null, 4], but axis 1 has 3 elements',
  'SHAPE_MISMATCH broadcastTo: shape [2, 3] does not broadcast to [2, 4]',
  'SHAPE_MISMATCH broadcastTo: shape [2, 3] does not broadcast to [1, 3]',
  'INVALID_ARGUMENT tensor: `values` is a Promise that was not awaited, but must be a number, a Float32Array',
  'SHAPE_MISMATCH item: shape [2, 3] has 6 elements',
  'INVALID_ARGUMENT data: there is no option `sginal`; did you mean `signal`?',
  'SHAPE_MISMATCH toImageData: shape [1, 1, 6] is no image',
  'INVALID_ARGUMENT scope: `f` is 5, but must be a function',
  'FOREIGN tensor: `values` is a DeviceBuffer of another device: copy its values to this one',
  'DISPOSED tensor: this DeviceBuffer was disposed of',
];

/** The beginning of each message, in the order of `jitMistakes` in the app. */
const JIT_MISTAKES = [
  'INVALID_ARGUMENT jit: `f` is 1, but must be a function of tensors',
  'INVALID_ARGUMENT jit: the function returned a Promise',
  'INVALID_ARGUMENT jit: the function returned a Promise',
  'INVALID_ARGUMENT jit: the function returned 1, but must return a tensor',
  'INVALID_ARGUMENT jit: `args[0]` is an array',
  'DISPOSED jit: `args[0]` was disposed of',
  'DISPOSED add: `b` was disposed of',
  'SHAPE_MISMATCH matmul: `b` is a scalar',
  'INVALID_ARGUMENT jit: the function returned an array or object that contains itself',
  'FOREIGN jit: the function returned a tensor of another device',
];

/** What `dtypes` in the app describes. */
const DTYPES = {
  indices: 'u32 Uint32Array 1,0',
  truths: 'bool Uint8Array 0,1,1,1,0,1',
  top: 'u32 Uint32Array 1,2,0,2',
  any: 'bool Uint8Array 1,1',
  not: 'bool Uint8Array 1,0,0,0,1,0',
  moved: 'u32 Uint32Array 1,0',
  joined: 'bool Uint8Array 0,1,1,1,0,1,0,1,1,1,0,1',
  stacked: 'u32 Uint32Array 1,0,1,0',
  mixed: 'f32 Float32Array 1,0,2,1',
  again: 'u32 Uint32Array 1,0',
  bytes: 'f32 Float32Array 1,2',
  picked: 'f32 Float32Array 5,0',
  gathered: 'f32 Float32Array 7,0,7,1,5,2',
  sum: 'f32 Float32Array 4',
  hot: 'f32 Float32Array 0,1,0,1,0,0',
  none: 'u32 Uint32Array ',
  nan: 'bool Uint8Array 0,1,0,0,0,0',
  finite: 'bool Uint8Array 1,0,0,0,1,1',
  fused: 'bool Uint8Array 0,1,1,1,0,0',
};

function verify(t, results, count) {
  const { counts, wrong, wrongs } = results.cases;
  const total = Object.values(counts).reduce((sum, one) => sum + one, 0);
  t.diagnostic(`${total} random cases of ${Object.keys(counts).length} operations on ${results.backend}`);
  assert.deepEqual(wrong, [], `${wrongs} cases are wrong`);
  assert.equal(total, count);
  assert.equal(results.mistakes.planned, 0, 'mistakes are found before anything is planned');
  assert.equal(results.mistakes.all.length, MISTAKES.length);
  MISTAKES.forEach((start, i) => assert.ok(results.mistakes.all[i].startsWith(start), results.mistakes.all[i]));
  assert.deepEqual(results.planned, { same: 1, other: 2, last: [28, 28] });
  assert.deepEqual(results.leaves, { sums: [8000, 8000, 8000], failed: true, isSame: true, kept: 4, empty: [] });
  assert.equal(results.agrees, true, 'the values of a device on this thread');
  assert.deepEqual(results.dtypes, {
    described: DTYPES,
    again: 'Uint8Array',
    items: [true, false, 3, 22],
    nested: [[false, true, true], [true, false, true]],
    read: ['Uint32Array', 'Uint8Array', 'Float32Array'],
  });
  assert.deepEqual(results.random, {
    uniforms: 0,
    isNear: true,
    bits: [1_052_951_523, 3_197_612_476, 3_196_008_204, 3_212_869_053],
    range: [true, true, true],
    moments: [true, true],
    differ: true,
  });
  assert.deepEqual(results.long, { isNear: true, wrong: 0 });
  assert.deepEqual(results.images, {
    shapes: [[16, 16, 4], [4, 16, 16]],
    same: [true, true],
    moved: 0,
    odd: [0, 15, 30, 255, 14, 29, 44, 255],
    again: [0, 0],
    unequal: 0,
    grey: [0, 0, 0, 255, 128, 128, 128, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 255, 0, 0, 0, 255],
    rgb: [0, 0, 255, 255],
    isImageData: true,
  });
  assert.deepEqual(results.jit, {
    all: [1, 2, 3, 4, 5].map((factor) => [factor + 11, 2 * factor + 21, 3 * factor + 32, 1, 2, 1].join()),
    once: [1, 1],
    recorded: 2,
    nested: [17, 33],
    chained: [11, 21],
  });
  JIT_MISTAKES.forEach((start, i) => assert.ok(results.jitMistakes[i].startsWith(start), results.jitMistakes[i]));
  assert.equal(Object.values(results.stacks).includes(false), false, JSON.stringify(results.stacks));
  verifyUses(results.uses);
  assert.deepEqual(results.scopes, { values: [4, 6], inner: 'DISPOSED', outer: 'no error' });
}

function verifyUses({ manyPrograms, uploads, disposals, signals, loop }) {
  assert.ok(loop < 400, `${loop} MB of 800 at a time`);
  assert.deepEqual(manyPrograms, [], 'sums that are wrong');
  assert.deepEqual(uploads, { count: 1, sums: Array(10).fill(4000) });
  const reads = (length) => [length, length, length, length];
  assert.deepEqual(disposals.results, [2, 2, 2, 2000, 2000, 2000].map(reads));
  assert.match(disposals.gone, /^DISPOSED /);
  const of = (name) => [`ABORTED ${name}: aborted by the caller`, 'why', `INVALID_ARGUMENT ${name}: \`signal\` is 5, but must be an AbortSignal`, 'no error'];
  assert.deepEqual(signals, {
    data: of('data'), computed: of('data'), run: of('run'), read: of('read'), none: of('read'), large: of('run'),
  });
}

test('tensors in Node', (t) => {
  const folder = fresh('tensors-node');
  const output = execFileSync('node', ['tensors-node.js', String(NODE_CASES)], { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 26 });
  const results = JSON.parse(output);
  verify(t, results, NODE_CASES);
  assert.deepEqual(results.printed, [
    'Tensor [1, 2] f32, on the host', 'Tensor [1, 2] bool, not computed yet', 'Tensor [] f32, not computed yet',
    'Tensor [] u32, on the device', 'Tensor [1, 2] f32, an argument', 'Tensor [1, 2] f32, disposed of',
  ]);
  const { grown, last, planned } = results.memory;
  t.diagnostic(`10,000 iterations: ${grown} bytes more of array buffers`);
  assert.ok(grown < 16 * 2 ** 20, `${grown} bytes more`);
  assert.deepEqual({ last, planned }, { last: 2, planned: 1 });
});

describe('tensors in Chromium', () => {
  let server;
  let browser;
  before(async () => {
    server = await serve(withPackage(fresh('tensors-page')));
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });
  for (const { name, query, cases } of PAGES) {
    test(name, async (t) => {
      const { result } = await outcome(browser, `${server.url}/tensors.html?${query}&count=${cases}`);
      verify(t, result, cases);
    });
  }
});

/** The folder, with the package where pages find it. */
function withPackage(folder) {
  cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
  const page = join(folder, 'tensors-page.js');
  writeFileSync(page, readFileSync(page, 'utf8').replace("'relampago'", "'./relampago/index.js'"));
  return folder;
}
