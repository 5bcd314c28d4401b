// Node has no WebGPU: SIMD is what it gets, and an error where a GPU is insisted on.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { fresh } from '../support/install.mjs';
import { ran } from '../support/ran.mjs';
import { verify } from '../support/verify.mjs';

/** The types of operations' options. */
const OPTIONS = {
  attention: 'AttentionOptions',
  convolve2d: 'Conv2dOptions',
  convolveLayer: 'ConvLayerOptions',
  matmulWith: 'MatmulOptions',
  rearrange: 'RearrangeOptions',
  reduceAxis: 'ReduceAxisOptions',
  rope: 'RopeOptions',
};

/** The names of an interface's properties, and of the one that it extends. */
const propertiesOf = (name, types) => {
  const [, base, body] = new RegExp(`interface ${name}(?: extends (\\w+))? {([^}]*)}`).exec(types);
  const own = [...body.matchAll(/^ +(\w+)\??:/gm)].map((match) => match[1]);
  return base ? [...propertiesOf(base, types), ...own] : own;
};

const alone = (owner, name) =>
  `INVALID_ARGUMENT: ${name}: the method was called without its ${owner}; call it as ${owner}.${name}(…)`;

describe('node', () => {
  let folder;
  before(() => {
    folder = fresh('node');
  });
  for (const backend of ['auto', 'simd']) {
    test(`ESM on ${backend}`, () => {
      const output = execFileSync('node', ['node.js', backend], { cwd: folder, encoding: 'utf8' });
      const results = JSON.parse(output);
      verify(results, backend);
      ran('Node', 'application', { version: process.version, ...results });
    });
  }
  test('relaxed instructions only where they keep NaN', () => {
    // Node 20 has them behind a flag.
    const flags = Number.parseInt(process.versions.node) < 21 ? ['--experimental-wasm-relaxed-simd'] : [];
    const output = execFileSync('node', [...flags, 'modules-node.js'], { cwd: folder, encoding: 'utf8' });
    assert.deepEqual(JSON.parse(output), {
      here: 'relampago_relaxed.wasm',
      keepsNan: 'relampago_relaxed.wasm',
      losesNan: 'relampago_simd128.wasm',
      scalar: 'UNSUPPORTED',
    });
  });
  test('what runs straight between arrays is compiled when it runs again', () => {
    const output = execFileSync('node', ['compiled-node.js'], { cwd: folder, encoding: 'utf8' });
    assert.deepEqual(JSON.parse(output), { counts: [0, 1, 1], same: true });
  });
  test('a call goes on where its caller loses its compiled code', () => {
    const output = execFileSync('node', ['caller-node.js'], { cwd: folder, encoding: 'utf8' });
    assert.deepEqual(JSON.parse(output), { values: [1, 2], step: 'after' });
  });
  test('before the module is there', () => {
    const output = execFileSync('node', ['loading-node.js'], { cwd: folder, encoding: 'utf8' });
    assert.deepEqual(JSON.parse(output), {
      tooEarly: 'NOT_LOADED',
      nothingThere: 'NOT_LOADED',
      noModule: 'NOT_LOADED',
      noSource: 'NOT_LOADED',
      loaded: 'no error',
      created: 'no error',
    });
  });
  test('errors give the value and the limit in the names of JavaScript', () => {
    const output = execFileSync('node', ['messages-node.js'], { cwd: folder, encoding: 'utf8' });
    const { messages, stacks, chosen, insisted } = JSON.parse(output);
    assert.deepEqual(Object.entries(stacks).filter(([, isFirst]) => isFirst !== true), [], 'stacks that begin elsewhere');
    assert.equal(chosen, 'simd');
    assert.match(insisted, /^NO_GPU: create: no GPU: /);
    assert.deepEqual(messages, [
      "INVALID_ARGUMENT: convolve2d: `kernelRows` is 3, but must be at most 2, the size of the input, unless the padding is `same`",
      'INVALID_ARGUMENT: convolve2d: `strideCols` is 0, but must be at least 1',
      'INVALID_ARGUMENT: convolve2d: `kernelCols` is -1, but must be a whole number from 0 to 4,294,967,295',
      'INVALID_ARGUMENT: clip: `min` is 2, but must be at most `max` (1), and neither may be NaN',
      'LENGTH_MISMATCH: vecAdd: `b` has 3 values, but must have 4 like `a`',
      'EMPTY: `max` of an empty input is undefined: at least 1 value is needed',
      'INVALID_ARGUMENT: relu: `x` is an object (Array), but must be a Float32Array',
      'INVALID_ARGUMENT: relu: `x` is a Promise that was not awaited, but must be a Float32Array',
      'INVALID_ARGUMENT: vecAdd: `b` is an object (DeviceBuffer), but must be a Float32Array; a DeviceBuffer is for batch.input(buffer) and programs; or await its read()',
      'INVALID_ARGUMENT: relu: `x` is an object (Tensor), but must be a Float32Array; use the methods of the tensor, or await its data()',
      'INVALID_ARGUMENT: relu: the method was called without its device; call it as device.relu(…)',
      'INVALID_ARGUMENT: relu: there is no option `itno`; did you mean `into`?',
      'INVALID_ARGUMENT: relu: `x` is an object (Float32Array), but must be a BufferId; record it with batch.upload(values) first',
      'INVALID_ARGUMENT: relu: `x` is an object (DeviceBuffer), but must be a BufferId; record it with batch.input(buffer) first',
      'INVALID_ARGUMENT: relu: `x` is an object (Tensor), but must be a BufferId; use the methods of the tensor, or record its data()',
      'INVALID_ARGUMENT: create: there is no option `backed`; did you mean `backend`?',
      ...['upload', 'batch', 'tiledSum2d', 'tune', 'rebuild'].map((name) => alone('device', name)),
      alone('buffer', 'read'),
      ...['run', 'read', 'runN', 'time', 'stream'].map((name) => alone('program', name)),
      alone('batch', 'input'),
      'no error',
      'LENGTH_MISMATCH: read: `into` is 1, but must be a Float32Array of 4 values',
      'LENGTH_MISMATCH: read: `into` has 2 arrays for 1 results',
      'LENGTH_MISMATCH: sum: `into` has 4 values, but the result is a number',
      'INVALID_ARGUMENT: clip: `min` is undefined, but must be a number',
      "INVALID_ARGUMENT: scale: `factor` is '2', but must be a number",
      'INVALID_ARGUMENT: runN: `feedback` is an object (Array), but must be an array of pairs [result, argument]',
      "INVALID_ARGUMENT: create: `backend` is 'cuda', but must be 'auto', 'gpu', 'webgpu' or 'simd'",
      'INVALID_ARGUMENT: create: `policy` is 5, but must be an object',
      'INVALID_ARGUMENT: create: `threads` is 0, but must be a whole number from 1 to 64, or \'auto\'',
      'INVALID_ARGUMENT: upload: `values` is an object (Array), but must be a Float32Array',
      'INVALID_ARGUMENT: upload: `values` is a Promise that was not awaited, but must be a Float32Array',
      'INVALID_ARGUMENT: upload: `values` is an object (Array), but must be a Float32Array',
      'INVALID_ARGUMENT: placeholder: `length` is -1, but must be a whole number from 0 to 4,294,967,295',
      "INVALID_ARGUMENT: compile: `outputs` is 'id', but must be a BufferId",
      'INVALID_ARGUMENT: compile: `outputs` is 5, but must be an array',
      'INVALID_ARGUMENT: read: `id` is 0.5, but must be a BufferId',
      'FOREIGN: input: `buffer` belongs to another device: copy its values to this one',
      'FOREIGN: tensor: `values` is a DeviceBuffer of another device: copy its values to this one',
      'FOREIGN: run: `args[0]` belongs to another device: copy its values to this one',
      'INVALID_ARGUMENT: run: `args[0]` is an object (Array), but must be a Float32Array',
      'INVALID_ARGUMENT: run: `args[1]` is an object (Array), but must be a Float32Array',
      'INVALID_ARGUMENT: run: `args[1]` is an object (Tensor), but must be a Float32Array; use the methods of the tensor, or await its data()',
      'LENGTH_MISMATCH: run: `args[0]` has 3 values, but must have 4',
      'LENGTH_MISMATCH: run: `args` has 2 values, but must have 1',
      'INVALID_ARGUMENT: read: `args[0]` is a Promise that was not awaited, but must be a Float32Array',
      'INVALID_ARGUMENT: stream: `runs` is 5, but must be an iterable',
      'INVALID_ARGUMENT: tiledSum2d: `values` is an object (Array), but must be a Float32Array',
      'INVALID_ARGUMENT: insert: `weights` is an object (Array), but must be a Float32Array',
      "INVALID_ARGUMENT: transpose: `dim0` is '0', but must be a whole number from 0 to 4,294,967,295",
      'INVALID_ARGUMENT: gather: `values` is an object (Array), but must be a Float32Array',
    ]);
  });
  test('operations have the options of their types, and no others', () => {
    const output = execFileSync('node', ['options-node.js'], { cwd: folder, encoding: 'utf8' });
    const { results, messages, signals, refused } = JSON.parse(output);
    const types = ['device.d.ts', 'relampago.d.ts'].map((file) => readFileSync(`${folder}/node_modules/relampago/${file}`, 'utf8'));
    for (const [name, { names, all, wrong }] of Object.entries(results)) {
      assert.deepEqual(all, ['no error', 'no error'], name);
      const refused = new RegExp(`^INVALID_ARGUMENT: ${name}: there is no option \`wrong\`; there are \``);
      wrong.forEach((message) => assert.match(message, refused));
      assert.deepEqual(names.sort(), propertiesOf(OPTIONS[name], types.join('\n')).sort(), name);
    }
    assert.deepEqual(messages, [
      'INVALID_ARGUMENT: matmulWith: `options` is 3, but must be an object',
      'INVALID_ARGUMENT: matmulWith: there is no option `transposedB`; did you mean `transposeB`?',
      'INVALID_ARGUMENT: insert: there is no option `transpose`; did you mean `transposed`?',
      'INVALID_ARGUMENT: insertBlocks: there is no option `transposed`; there are `k`, `n`, `format`',
      'INVALID_ARGUMENT: create: `policy`: there is no option `matmull`; did you mean `matmul`?',
      'no error',
      'no error',
      'no error',
    ]);
    for (const [name, [right, unknown, signal]] of Object.entries(signals)) {
      assert.equal(right, 'no error', name);
      assert.equal(unknown, `INVALID_ARGUMENT: ${name}: there is no option \`sginal\`; did you mean \`signal\`?`);
      assert.equal(signal, `INVALID_ARGUMENT: ${name}: \`options\` is an AbortSignal, but must be { signal }`);
    }
    const noConstructor = (name) => `INVALID_ARGUMENT: ${name} has no constructor; methods such as GpuDevice.create() make its objects`;
    assert.deepEqual(refused, [
      'INVALID_ARGUMENT: TensorView: there is no option `stride`; did you mean `strides`?',
      'INVALID_ARGUMENT: TensorView: a view has a `layout` or `strides`, but not both',
      'INVALID_ARGUMENT: run: there is no option `into`; there are `signal`',
      ...['DeviceBuffer', 'GpuCommandBatch', 'GpuDevice', 'GpuMatmulCache', 'Program'].map(noConstructor),
    ]);
  });
  test('streams give each result as soon as it is there', () => {
    const output = execFileSync('node', ['streams-node.js'], { cwd: folder, encoding: 'utf8' });
    assert.deepEqual(JSON.parse(output), {
      list: [2, 4, 6],
      promises: [2],
      none: [],
      failing: [2, 4, 'the source'],
      answering: [2, 4, 6],
      stopped: [[2, 4], ['ended']],
      silent: [2],
      wrong: [[2, 'INVALID_ARGUMENT'], ['INVALID_ARGUMENT']],
    });
  });
  test('loops that dispose of nothing give their memory back', () => {
    const output = execFileSync('node', ['loops-node.js'], { cwd: folder, encoding: 'utf8' });
    const { sizes, prompts } = JSON.parse(output);
    assert.ok(prompts <= 20, `${prompts} buffers in a loop that disposes of all it makes`);
    Object.entries(sizes).forEach(([name, size]) => assert.ok(size < 1000, `${name}: ${size} MB of at least 4,000`));
  });
  test('the entries for Node export what those for browsers do', async () => {
    for (const entry of ['', 'llm/', 'ptx/']) {
      const [browser, node] = await Promise.all(
        ['index.js', 'node.js'].map((file) => import(`${folder}/node_modules/relampago/${entry}${file}`)),
      );
      assert.deepEqual(Object.keys(node), Object.keys(browser), entry);
    }
  });
  test('no GPU', () => {
    const { status, stderr } = spawnSync('node', ['node.js', 'gpu'], { cwd: folder, encoding: 'utf8' });
    assert.notEqual(status, 0);
    assert.match(stderr, /NO_GPU/);
  });
});
