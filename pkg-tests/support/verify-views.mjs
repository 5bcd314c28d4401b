// Checks what views.js returned.

import assert from 'node:assert/strict';
import { verify } from './verify.mjs';

const [m, k, n] = [3, 64, 5];
const values = (length) => Array.from({ length }, (_, i) => ((i * 7) % 13 - 6) / 8);
const product = Array.from({ length: m * n }, (_, at) => {
  const [row, col] = [Math.floor(at / n), at % n];
  return Array.from({ length: k }, (_, i) => values(m * k)[row * k + i] * values(k * n)[i * n + col])
    .reduce((sum, term) => sum + term, 0);
});

/** The same rows times one column. */
const column = Array.from({ length: m }, (_, row) => values(k).reduce((sum, weight, i) => sum + values(m * k)[row * k + i] * weight, 0));

/** How far a weight may be from what it was, of the largest one; see the formats' documentation. */
const ROUNDING = { f32: 0, f16: 0, q8_0: 1 / 253, q4_0: 1 / 7.9 };

const LIST = [
  { name: 'blocks', k: 32, n: 2, format: 'q8_0' },
  { name: 'q8_0', k: 64, n: 5, format: 'q8_0' },
  { name: 'q8_0 turned', k: 64, n: 5, format: 'q8_0' },
];

const VIEWS = {
  shape: [[2, 3, 1, 1], [1, 4, 1, 1], 1, 6],
  gather: [1, 5, 9, 2, 6, 10],
  tiled: [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11],
  repeated: [3, 4, 3, 4],
  reshaped: [2, 2, 3, 1],
  product: [92, 107, 122, 137, 104, 122, 140, 158],
  reduced: [33, 10, 1],
  tiles: { values: [10, 18, 17, 21], tileCount: [2, 2, 1, 1] },
  codes: {
    shape: 'INVALID_ARGUMENT',
    layout: 'INVALID_ARGUMENT',
    strides: 'LENGTH_MISMATCH',
    tileSize: 'LENGTH_MISMATCH',
    slice: 'LIMIT_EXCEEDED',
    beyond: 'LENGTH_MISMATCH',
    reshape: 'INVALID_ARGUMENT',
    reduction: 'INVALID_ARGUMENT',
    product: 'INVALID_ARGUMENT',
    noView: 'INVALID_ARGUMENT',
    deep: 'INVALID_ARGUMENT',
    nothing: 'INVALID_ARGUMENT',
    disposed: 'DISPOSED',
  },
};

const CUSTOM_CODES = {
  disposes: 'no error,DISPOSED',
  inputs: 'INVALID_ARGUMENT',
  many: 'LIMIT_EXCEEDED',
  identifier: 'INVALID_ARGUMENT',
  names: 'INVALID_ARGUMENT',
  function: 'INVALID_ARGUMENT',
  wgsl: 'INVALID_ARGUMENT',
  parameters: 'LENGTH_MISMATCH',
  disposed: 'DISPOSED',
};

export function verifyViews(results, backend) {
  verify(results, backend);
  const [here, there] = results.views;
  for (const where of results.views) {
    verifyCache(where.cache);
    verifyView(where.views);
    verifyTiles(where.tiles);
    verifyNorms(where.norms);
    verifyLayers(where.layers);
    verifyHalves(where.halves, backend);
  }
  verifyCustom(here.custom, backend);
  assert.equal(there?.custom ?? 'UNSUPPORTED', 'UNSUPPORTED');
}

function verifyCache({ products, classy, blocks, list, removed, recording, codes }) {
  for (const [format, rounding] of Object.entries(ROUNDING)) {
    const { product: got, same, recorded } = products[format];
    assert.ok(same, `${format}, stored transposed, is the same matrix`);
    const tolerance = 1e-5 + k * 0.75 * 0.75 * rounding;
    got.forEach((value, i) => {
      assert.ok(Math.abs(value - product[i]) <= tolerance, `${format}, value ${i}: ${value}, not ${product[i]}`);
    });
    assert.equal(got.length, product.length);
    const [own] = recorded.splice(2, 1);
    for (const one of recorded) {
      assert.equal(one.length, product.length);
      assert.ok(one.every((value, i) => Math.abs(value - got[i]) <= 1e-5), `${format}, recorded: ${one}, not ${got}`);
    }
    assert.deepEqual(own, column, 'weights stay what they were when they were recorded');
  }
  assert.deepEqual(classy, products.f32.product);
  assert.deepEqual(blocks, [528, -264]);
  assert.deepEqual(list, LIST);
  assert.deepEqual(removed, [true, false]);
  assert.deepEqual(recording, {
    unknown: 'INVALID_ARGUMENT',
    removed: 'INVALID_ARGUMENT',
    length: 'LENGTH_MISMATCH',
    rows: 'INVALID_ARGUMENT',
    id: 'INVALID_ARGUMENT',
    foreign: 'FOREIGN',
    after: 'no error',
  });
  assert.deepEqual(codes, {
    unknown: 'INVALID_ARGUMENT',
    name: 'INVALID_ARGUMENT',
    length: 'LENGTH_MISMATCH',
    input: 'LENGTH_MISMATCH',
    format: 'INVALID_ARGUMENT',
    blocks: 'INVALID_ARGUMENT',
    array: 'INVALID_ARGUMENT',
    givenAway: 'INVALID_ARGUMENT',
    aborted: 'ABORTED',
    disposed: 'DISPOSED',
  });
}

function verifyView(views) {
  assert.deepEqual(views, VIEWS);
}

/** Every value of these is one of binary16, so that nothing is lost where they are rounded. */
function verifyHalves({ said, unasked, product, code }, backend) {
  assert.equal(code, 'INVALID_ARGUMENT');
  assert.equal(unasked, backend === 'gpu' ? 'not-requested' : 'no-gpu');
  // Software adapters have no such matrices.
  assert.ok((backend === 'gpu' ? ['no-cooperative-matrices', 'used'] : ['no-gpu']).includes(said), said);
  const [m, k, n] = [33, 70, 29];
  const [a, b] = [values(m * k), values(k * n)];
  assert.equal(product.length, m * n);
  product.forEach((value, at) => {
    const [row, col] = [Math.floor(at / n), at % n];
    const terms = Array.from({ length: k }, (_, i) => a[row * k + i] * b[i * n + col]);
    const right = terms.reduce((sum, term) => sum + term, 0);
    assert.ok(Math.abs(value - right) <= 1e-5, `value ${at}: ${value}, not ${right}`);
  });
}

function verifyTiles(tiles) {
  const x = Array.from({ length: 33 * 17 }, (_, i) => (i % 5) - 2);
  assert.deepEqual(tiles, {
    sum: x.reduce((a, b) => a + b),
    max: 2,
    min: -2,
    none: '-Infinity',
    notANumber: 'NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,Infinity,-Infinity,NaN,Infinity,-Infinity,NaN',
    // The last tile is a single value.
    partial: [[2, 2, 2, 2, 2, -2], [3, 2, 1, 1]],
    codes: { length: 'LENGTH_MISMATCH', reduction: 'INVALID_ARGUMENT', rows: 'INVALID_ARGUMENT' },
  });
}

function verifyNorms([layer, rms, ...recorded]) {
  const rows = [[1, 2, 3, 6], [3, 0, 0, 3]];
  const [gain, bias] = [[1, 2, 1, 1], [0, 0, 5, 0]];
  const mean = (row) => row.reduce((a, b) => a + b) / row.length;
  const root = (row) => Math.sqrt(mean(row.map((x) => x * x)) + 1e-6);
  const centred = (row) => row.map((x) => x - mean(row));
  const scaled = (row, by) => row.map((x, i) => (x / by) * gain[i]);
  const near = (got, right) => {
    assert.equal(got.length, right.length);
    got.forEach((value, i) => assert.ok(Math.abs(value - right[i]) <= 1e-5, `value ${i}: ${value}, not ${right[i]}`));
  };
  near(layer, rows.flatMap((row) => scaled(centred(row), root(centred(row))).map((x, i) => x + bias[i])));
  near(rms, rows.flatMap((row) => scaled(row, root(row))));
  assert.deepEqual(recorded, [layer, rms]);
}

function verifyLayers({ values: [plain, dilated, recorded], codes }) {
  assert.deepEqual(plain, [60, 70, 80, 132, 158, 184, 180, 190, 200, 444, 470, 496]);
  assert.deepEqual(dilated, [18, 30, 0, 10, 72, 88, 42, 56, 90, 102, 60, 70, 168, 184, 126, 140]);
  assert.deepEqual(recorded, plain);
  assert.deepEqual(codes, [...Array(4).fill('INVALID_ARGUMENT'), 'LENGTH_MISMATCH']);
}

function verifyCustom({ name, plan, wrong, codes: { throws, wordless, noNumber, badWgsl, takesAway, ...codes } }, backend) {
  assert.equal(name, 'shrink');
  assert.deepEqual(plan, ['shrink,scale,neg,blend']);
  assert.deepEqual(wrong, [0, 0]);
  assert.deepEqual(codes, CUSTOM_CODES);
  // Each back-end minds its own half of the definition.
  const [function_, wgsl] = backend === 'gpu' ? ['no error', 'GPU'] : ['FUNCTION', 'no error'];
  assert.deepEqual([throws, wordless, noNumber, badWgsl], [function_, function_, function_, wgsl]);
  assert.equal(takesAway, `${backend === 'gpu' ? 'no error' : 'INVALID_ARGUMENT'},DISPOSED`);
}
