// Cached weights, views, tiled reductions, layers and custom operations, on a device of the page and on one in a
// worker. Like app.js it imports nothing of the package and returns plain data.

import { codeOf, run } from './app.js';

export async function runViews(relampago, backend) {
  const results = await run(relampago, backend);
  const options = globalThis.Worker ? [{}, { worker: true }] : [{}];
  results.views = [];
  for (const option of options) {
    // Everything goes to the GPU where there is one.
    const policy = { matmul: 0, reduction: 0 };
    const device = await relampago.GpuDevice.create({ backend, policy, ...option });
    results.views.push({
      cache: await cache(relampago, device),
      views: await views(relampago, device),
      tiles: await tiles(relampago, device),
      norms: await norms(device),
      layers: await layers(relampago, device),
      halves: await halves(relampago, device, { backend, policy, ...option }),
      custom: option.worker ? await unsupported(relampago, device) : await custom(relampago, device),
    });
    device.dispose();
  }
  return results;
}

const values = (length) => Float32Array.from({ length }, (_, i) => ((i * 7) % 13 - 6) / 8);
const [m, k, n] = [3, 64, 5];

async function cache(relampago, device) {
  const cache = device.matmulCache();
  const code = (action) => codeOf(relampago, action);
  const [input, weights] = [values(m * k), values(k * n)];
  const turned = Float32Array.from(weights, (_, i) => weights[(i % k) * n + Math.floor(i / k)]);
  const products = {};
  for (const format of ['f32', 'f16', 'q8_0', 'q4_0']) {
    await cache.insert(format, weights, { k, n, format });
    await cache.insert(`${format} turned`, turned, { k, n, format, transposed: true });
    const product = [...await cache.matmulCached(format, input, m)];
    const other = [...await cache.matmulCached(`${format} turned`, input, m)];
    const recorded = await recordedProducts(device, cache, format, input);
    products[format] = { product, same: JSON.stringify(product) === JSON.stringify(other), recorded };
  }
  // As options, all of a class is read.
  class Stored { k = k; n = n; name() {} get transposed() { return true; } }
  await cache.insert('classy', turned, new Stored());
  const classy = [...await cache.matmulCached('classy', input, m)];
  // Two columns of 32 weights: 1, 2, 3, … and −1, −2, …, with scales of 1 and of ½.
  const block = (scale, sign) => [scale & 255, scale >> 8, ...Array.from({ length: 32 }, (_, i) => sign * (i + 1))];
  const blocks = Uint8Array.from([...block(0x3c00, 1), ...block(0x3800, -1)]);
  await cache.insertBlocks('blocks', blocks, { k: 32, n: 2, format: 'q8_0' });
  const results = {
    products,
    classy,
    blocks: [...await cache.matmulCached('blocks', new Float32Array(32).fill(1), 1)],
    list: (await cache.weights()).filter(({ name }) => name.startsWith('q8') || name === 'blocks'),
    removed: [await cache.remove('blocks'), await cache.remove('blocks')],
    recording: await recordingMistakes(relampago, device, cache),
    codes: {
      unknown: await code(() => cache.matmulCached('blocks', input, m)),
      name: await code(() => cache.insert(7, weights, { k, n })),
      length: await code(() => cache.insert('x', weights, { k, n: 4 })),
      input: await code(() => cache.matmulCached('f32', input, 2)),
      format: await code(() => cache.insert('x', weights, { k, n, format: 'q5_k' })),
      blocks: await code(() => cache.insertBlocks('x', blocks, { k: 33, n: 2, format: 'q8_0' })),
      array: await code(() => cache.insertBlocks('x', [1, 2], { k: 32, n: 2, format: 'q8_0' })),
      givenAway: await code(() => cache.insertBlocks('x', givenAway(), { k: 32, n: 2, format: 'q8_0' })),
      aborted: await code(() => cache.matmulCached('f32', input, m, { signal: AbortSignal.abort() })),
    },
  };
  cache.dispose();
  results.codes.disposed = await code(() => cache.matmulCached('f32', input, m));
  return results;
}

// The products of a program's argument and of an upload, one with weights that are replaced meanwhile, and a batch's.
async function recordedProducts(device, cache, name, input) {
  const batch = device.batch();
  const [x, given] = [batch.placeholder(m * k), batch.upload(input)];
  await cache.insert('recorded', values(k), { k, n: 1 });
  const own = batch.matmulCached(cache, 'recorded', given, m);
  await cache.insert('recorded', values(k).fill(NaN), { k, n: 1 });
  const products = [x, given].map((id) => batch.neg(batch.matmulCached(cache, name, batch.neg(id), m)));
  const program = await batch.compile([...products, own]);
  batch.dispose();
  const results = await program.read([input]);
  const single = device.batch();
  const last = single.matmulCached(cache, name, single.upload(input), m);
  await single.execute();
  results.push(await single.read(last));
  [program, single].forEach((object) => object.dispose());
  return results.map((result) => [...result]);
}

async function recordingMistakes(relampago, device, cache) {
  const code = (action) => codeOf(relampago, action);
  const other = await relampago.GpuDevice.create({ backend: 'simd' });
  const foreign = other.matmulCache();
  await foreign.insert('f32', values(k * n), { k, n });
  const batch = device.batch();
  const x = batch.upload(values(m * k));
  const codes = {
    unknown: await code(() => batch.matmulCached(cache, 'nothing', x, m)),
    removed: await code(() => batch.matmulCached(cache, 'blocks', x, m)),
    length: await code(() => batch.matmulCached(cache, 'f32', x, m + 1)),
    rows: await code(() => batch.matmulCached(cache, 'f32', x, 'three')),
    id: await code(() => batch.matmulCached(cache, 'f32', values(m * k), m)),
    foreign: await code(() => batch.matmulCached(foreign, 'f32', x, m)),
    after: await code(() => batch.matmulCached(cache, 'f32', x, m)),
  };
  [batch, foreign, other].forEach((object) => object.dispose());
  return codes;
}

// Bytes of a buffer that went elsewhere.
function givenAway() {
  const bytes = new Uint8Array(68);
  structuredClone(bytes, { transfer: [bytes.buffer] });
  return bytes;
}

async function views({ TensorView, ...relampago }, device) {
  const code = (action) => codeOf(relampago, action);
  const twelve = Float32Array.from({ length: 12 }, (_, i) => i);
  const matrix = new TensorView([3, 4]);
  const columns = matrix.transpose(0, 1).slice(0, 1, 3); // columns 1 and 2 as rows
  const tiled = new TensorView([2, 6], { layout: { tileSize: [2, 2] }, offset: 0 });
  const repeated = new TensorView([2, 2], { strides: [0, 1], offset: 3 });
  const results = {
    shape: [columns.shape, columns.strides, columns.offset, columns.length],
    gather: [...columns.gather(twelve)],
    tiled: [...tiled.gather(twelve)],
    repeated: [...repeated.gather(twelve)],
    reshaped: new TensorView([12]).reshape([2, 2, 3]).shape,
    product: [...await device.matmulView(columns, twelve, matrix, twelve)],
    reduced: ['sum', 'max', 'min'].map((how) => columns.reduce(how, twelve)),
    tiles: matrix.reduceTiles('sum', twelve, [2, 2]),
    codes: {
      shape: await code(() => new TensorView([])),
      layout: await code(() => new TensorView([2, 2], { layout: 'diagonal' })),
      strides: await code(() => new TensorView([2, 2], { strides: [2] })),
      tileSize: await code(() => new TensorView([4, 4], { layout: { tileSize: [2] } })),
      slice: await code(() => matrix.slice(0, 1, 4)),
      beyond: await code(() => matrix.gather(twelve.subarray(1))),
      reshape: await code(() => columns.reshape([2, 3])),
      reduction: await code(() => matrix.reduce('mean', twelve)),
      product: await code(() => device.matmulView(matrix, twelve, matrix, twelve)),
      noView: await code(() => device.matmulView(null, twelve, matrix, twelve)),
      deep: await code(() => device.matmulView(new TensorView([2, 2, 3]), twelve, matrix, twelve)),
      nothing: await code(() => device.matmulView(new TensorView([0, 3]), twelve, new TensorView([2, 0]), twelve)),
    },
  };
  results.tiles.values = [...results.tiles.values];
  matrix.dispose();
  results.codes.disposed = await code(() => matrix.shape);
  return results;
}

async function tiles(relampago, device) {
  const code = (action) => codeOf(relampago, action);
  const [rows, cols] = [33, 17];
  const x = Float32Array.from({ length: rows * cols }, (_, i) => (i % 5) - 2);
  const { values, tileCount } = await device.tiledReducePartial('max', x, rows, cols);
  return {
    sum: await device.tiledSum2d(x, rows, cols),
    max: await device.tiledMax2d(x, rows, cols),
    min: await device.tiledMin2d(x, rows, cols),
    none: String(await device.tiledMax2d(new Float32Array(), 0, 0)),
    notANumber: await notNumbers(relampago, device),
    partial: [[...values], tileCount],
    codes: {
      length: await code(() => device.tiledSum2d(x, rows, rows)),
      reduction: await code(() => device.tiledReduce2d('mean', x, rows, cols)),
      rows: await code(() => device.tiledSum2d(x, 'x', cols)),
    },
  };
}

// Reductions of NaN, and of infinities that cancel.
async function notNumbers({ TensorView }, device) {
  const view = new TensorView([1, 2]);
  const results = [];
  for (const two of [Float32Array.of(1, NaN), Float32Array.of(Infinity, -Infinity)]) {
    results.push(await device.tiledSum2d(two, 1, 2), await device.tiledMax2d(two, 1, 2), await device.tiledMin2d(two, 1, 2));
    results.push(...['sum', 'max', 'min'].map((how) => view.reduce(how, two)), (await device.tiledReducePartial('sum', two, 1, 2)).values[0]);
  }
  return results.join();
}

// Of two rows, alone and recorded.
async function norms(device) {
  const [x, gain, bias] = [Float32Array.of(1, 2, 3, 6, 3, 0, 0, 3), Float32Array.of(1, 2, 1, 1), Float32Array.of(0, 0, 5, 0)];
  const alone = [await device.layerNorm(x, gain, bias, 2, 4, 1e-6), await device.rmsNorm(x, gain, 2, 4, 1e-6)];
  const batch = device.batch();
  const [inX, inGain, inBias] = [x, gain, bias].map((values) => batch.upload(values));
  const ids = [batch.layerNorm(inX, inGain, inBias, 2, 4, 1e-6), batch.rmsNorm(inX, inGain, 2, 4, 1e-6)];
  await batch.execute();
  const recorded = [await batch.read(ids[0]), await batch.read(ids[1])];
  batch.dispose();
  return [...alone, ...recorded].map((values) => [...values]);
}

// Alone and recorded: two images of two channels, in one group and in two, and with what is no layer.
async function layers(relampago, device) {
  const image = { inputRows: 2, inputCols: 3, kernelRows: 2, kernelCols: 1, channels: 2, filters: 2, batch: 2 };
  const input = Float32Array.from({ length: 24 }, (_, i) => i);
  const whole = Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8);
  const dilated = { ...image, padding: 'same', groups: 2, dilationRows: 2, strideCols: 2 };
  const alone = [await device.convolveLayer(input, whole, image), await device.convolveLayer(input, whole.subarray(4), dilated)];
  const batch = device.batch();
  const recorded = batch.relu(batch.convolveLayer(batch.upload(input), batch.upload(whole), image));
  await batch.execute();
  const codes = [{ groups: 3 }, { groups: 0 }, { channels: undefined }, { dilationCols: -1 }, { batch: 3 }];
  return {
    values: [...alone, await batch.read(recorded)].map((values) => [...values]),
    codes: await Promise.all(codes.map((wrong) => codeOf(relampago, () => device.convolveLayer(input, whole, { ...image, ...wrong })))),
  };
}

// Products in binary16 where they are offered, and what is said of them where they are not.
async function halves(relampago, device, options) {
  const create = (halfPrecision) => relampago.GpuDevice.create({ ...options, halfPrecision });
  const half = await create(true);
  const [rows, depth, cols] = HALVES;
  const product = await half.matmul(values(rows * depth), values(depth * cols), rows, depth, cols);
  const said = half.info.halfPrecision;
  half.dispose();
  return { said, unasked: device.info.halfPrecision, product: [...product], code: await codeOf(relampago, () => create(16)) };
}

/** No whole tile. */
const HALVES = [33, 70, 29];

const SHRINK = {
  name: 'shrink',
  inputs: ['x'],
  parameters: ['limit'],
  wgsl: 'sign(x) * max(abs(x) - limit, 0.0)',
  function: (x, limit) => Math.sign(x) * Math.max(Math.abs(x) - limit, 0),
};

async function custom(relampago, device) {
  const { CustomOp } = relampago;
  const code = (action) => codeOf(relampago, action);
  const define = (change) => code(() => new CustomOp({ ...SHRINK, ...change }));
  const shrink = new CustomOp(SHRINK);
  const blend = new CustomOp({
    name: 'blend',
    inputs: ['x', 'y', 'z'],
    wgsl: 'if (z > 0.0) { return x; } return y;',
    function: (x, y, z) => (z > 0 ? x : y),
  });
  const batch = device.batch();
  const x = batch.placeholder(2000);
  const y = batch.scale(batch.customElementwise(shrink, [x], [0.25]), 2);
  const z = batch.customElementwise(blend, [y, batch.neg(x), x]);
  const program = await batch.compile([z]);
  const given = values(2000);
  const plan = (await program.explain()).kernels.map(({ operations }) => operations.join());
  const [read] = await program.read([given]);
  const [kept] = await program.run([given]);
  const expected = Float32Array.from(given, (x) => (x > 0 ? 2 * SHRINK.function(x, 0.25) : -x));
  const wrong = (a) => a.filter((value, i) => value !== expected[i]).length;
  const results = { name: shrink.name, plan, wrong: [wrong(read), wrong(await kept.read())] };
  [batch, program, kept].forEach((object) => object.dispose());
  results.codes = {
    inputs: await define({ inputs: [] }),
    many: await define({ inputs: ['a', 'b', 'c', 'd'] }),
    identifier: await define({ inputs: ['1x'] }),
    names: await define({ inputs: 'x' }),
    function: await define({ function: 'x' }),
    wgsl: await define({ wgsl: undefined }),
    parameters: await code(() => device.batch().customElementwise(shrink, [], [])),
    throws: await runs(relampago, device, { function: () => { throw new Error('no'); } }),
    wordless: await runs(relampago, device, { function: () => { throw Object.assign(new Error(), { name: Symbol() }); } }),
    noNumber: await runs(relampago, device, { function: () => '1' }),
    badWgsl: await runs(relampago, device, { wgsl: 'nothing(x)' }),
    takesAway: await interferes(relampago, device, (_, x) => structuredClone(x, { transfer: [x.buffer] })),
    disposes: await interferes(relampago, device, (program) => program.dispose()),
  };
  shrink.dispose();
  results.codes.disposed = await code(() => shrink.name);
  return results;
}

// Runs an operation that may not work on every back-end.
async function runs(relampago, device, change) {
  const op = new relampago.CustomOp({ ...SHRINK, ...change });
  const batch = device.batch();
  const y = batch.customElementwise(op, [batch.upload(values(5))], [1]);
  const outcome = await codeOf(relampago, async () => {
    await batch.execute();
    await batch.read(y);
  });
  batch.dispose();
  return outcome;
}

// What becomes of a program whose own function does something to it, or to its argument.
async function interferes(relampago, device, interfere) {
  const x = values(100_000);
  let once = () => interfere(program, x);
  const op = new relampago.CustomOp({
    ...SHRINK,
    function: (x) => {
      once?.();
      once = undefined;
      return x;
    },
  });
  const batch = device.batch();
  const program = await batch.compile([batch.customElementwise(op, [batch.placeholder(x.length)], [1])]);
  batch.dispose();
  const code = (action) => codeOf(relampago, action);
  const codes = [await code(() => program.read([x]))];
  program.dispose();
  program.dispose();
  return [...codes, await code(() => program.read([values(100_000)]))].join();
}

async function unsupported(relampago, device) {
  const batch = device.batch();
  const shrink = new relampago.CustomOp(SHRINK);
  return codeOf(relampago, () => batch.customElementwise(shrink, [batch.upload(values(5))], [1]));
}
