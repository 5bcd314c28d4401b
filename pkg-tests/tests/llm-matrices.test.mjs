// Quantised matrices, and caches of f16, in Node and on a page.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { launch } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { writeTinyModel } from '../support/tiny-model.mjs';
import { unbundled } from '../support/unbundled.mjs';

/** Rows of Q8_0: a scale in f16, of a half, and 32 integers. */
function blocks(rows, cols) {
  const bytes = new Uint8Array((rows * cols / 32) * 34);
  const weights = new Float32Array(rows * cols);
  for (let block = 0; block < bytes.length / 34; block++) {
    bytes.set([0x00, 0x38], block * 34);
    for (let i = 0; i < 32; i++) {
      const value = ((block * 37 + i * 11) % 255) - 127;
      bytes[block * 34 + 2 + i] = value;
      weights[block * 32 + i] = value / 2;
    }
  }
  return { bytes, weights };
}

/** Products in f64. */
function products(x, weights, m, rows, cols) {
  return Array.from({ length: m * rows }, (_, at) => {
    const [i, j] = [Math.floor(at / rows), at % rows];
    let sum = 0;
    for (let k = 0; k < cols; k++) {
      sum += x[i * cols + k] * weights[j * cols + k];
    }
    return sum;
  });
}

const [ROWS, COLS, M] = [5, 64, 3];
const { bytes, weights } = blocks(ROWS, COLS);
const x = Float32Array.from({ length: M * COLS }, (_, i) => ((i * 29) % 17) / 16 - 0.5);

function verify(y) {
  const exact = products(x, weights, M, ROWS, COLS);
  assert.equal(y.length, exact.length);
  exact.forEach((value, i) => assert.ok(Math.abs(y[i] - value) < 1e-2, `${i}: ${y[i]}, ${value}`));
}

describe('matrices and caches of relampago/llm', () => {
  let folder;
  let llm;
  before(async () => {
    folder = fresh('llm-matrices');
    writeTinyModel(folder);
    llm = await import(pathToFileURL(join(folder, 'node_modules/relampago/llm/node.js')));
  });

  test('products in node', async () => {
    const matrix = await llm.QuantizedMatrix.fromBlocks('Q8_0', bytes, ROWS, COLS);
    assert.deepEqual([matrix.type, matrix.rows, matrix.cols, matrix.backend], ['Q8_0', ROWS, COLS, 'simd']);
    verify(await matrix.matmul(x, M));
    // Several calls at a time, and a second matrix beside the first one.
    const other = await llm.QuantizedMatrix.fromBlocks('F32', weights, ROWS, COLS);
    (await Promise.all([other, matrix, other].map((each) => each.matmul(x, M)))).forEach(verify);
    matrix.dispose();
    matrix.dispose();
    verify(await other.matmul(x, M));
    await assert.rejects(matrix.matmul(x, M), { code: 'DISPOSED', message: /this QuantizedMatrix was disposed of/ });
    other.dispose();
    // The module starts anew after the last one.
    const again = await llm.QuantizedMatrix.fromBlocks('Q8_0', bytes, ROWS, COLS);
    verify(await again.matmul(x, M));
    again.dispose();
  });

  test('mistakes with matrices', async () => {
    const make = (...values) => llm.QuantizedMatrix.fromBlocks(...values);
    await assert.rejects(make('Q9', bytes, ROWS, COLS), { code: 'INVALID_ARGUMENT', message: /`type` is 'Q9'/ });
    await assert.rejects(make('Q8_0', bytes, ROWS, 31), { code: 'INVALID_ARGUMENT', message: /`cols` is 31/ });
    await assert.rejects(make('Q8_0', bytes, ROWS + 1, COLS), { code: 'LENGTH_MISMATCH' });
    await assert.rejects(make('Q8_0', [1, 2], 1, 32), { code: 'INVALID_ARGUMENT', message: /`blocks`/ });
    await assert.rejects(make('Q8_0', bytes, ROWS, COLS, { devise: 'gpu' }), { message: /did you mean `device`/ });
    await assert.rejects(make('Q8_0', bytes, ROWS, COLS, { device: 'gpu' }), { code: 'NO_GPU' });
    const matrix = await make('Q8_0', bytes, ROWS, COLS);
    await assert.rejects(matrix.matmul(x), { code: 'LENGTH_MISMATCH' });
    await assert.rejects(matrix.matmul([1, 2]), { code: 'INVALID_ARGUMENT', message: /a Float32Array/ });
    verify(await matrix.matmul(x, M));
    matrix.dispose();
  });

  const cacheTypes = [
    { cacheType: 'f16', tolerance: 2e-3, bits: 16, part: 1 / 2 },
    { cacheType: 'q8_0', tolerance: 3e-2, bits: 8, part: 3 / 8 },
  ];
  for (const { cacheType, tolerance, bits, part } of cacheTypes) {
    test(`caches of ${cacheType} make sessions smaller and change logits little`, async () => {
      const file = readFileSync(join(folder, 'tiny.gguf'));
      const native = JSON.parse(readFileSync(join(folder, 'tiny.json'), 'utf8'));
      const plain = await llm.LanguageModel.load(file);
      const model = await llm.LanguageModel.load(file, { cacheType });
      assert.equal(model.info.sessionBytes, part * plain.info.sessionBytes);
      const inspected = await llm.LanguageModel.inspect(file, { cacheType });
      assert.equal(inspected.sessionBytes, model.info.sessionBytes);
      const session = await model.session();
      const logits = await session.prefill(await model.tokenize('hello'));
      const rms = Math.sqrt(native.logits.reduce((sum, logit) => sum + logit ** 2, 0) / native.logits.length);
      native.logits.forEach((logit, i) => assert.ok(Math.abs(logits[i] - logit) < tolerance * rms, `${i}`));
      const saved = await session.save();
      assert.deepEqual(await (await model.loadSession(saved)).tokens(), await session.tokens());
      await assert.rejects(plain.loadSession(saved), { code: 'INVALID_MODEL', message: new RegExp(`have ${bits} bits`) });
      await assert.rejects(llm.LanguageModel.load(file, { cacheType: 'q8' }), { code: 'INVALID_ARGUMENT' });
      model.dispose();
      plain.dispose();
    });
  }

  describe('on a page', () => {
    let server;
    let browser;
    before(async () => {
      server = await serve(unbundled(folder, 'llm-sources', ['llm-sources.js', 'tiny.gguf']));
      browser = await launch();
    });
    after(async () => {
      server?.close();
      await browser?.close();
    });

    for (const [device, worker] of [['simd', true], ['simd', false], ['gpu', true], ['gpu', false]]) {
      test(`products, device ${device}, worker ${worker}`, async () => {
        const page = await browser.newPage();
        await page.goto(`${server.url}/llm-sources.html`);
        const result = await page.evaluate(async ([bytes, x, shape, options]) => {
          const { QuantizedMatrix } = await import('/relampago/llm/index.js');
          const [rows, cols, m] = shape;
          const matrix = await QuantizedMatrix.fromBlocks('Q8_0', Uint8Array.from(bytes), rows, cols, options);
          const y = await matrix.matmul(Float32Array.from(x), m);
          matrix.dispose();
          return { y: [...y], backend: matrix.backend };
        }, [[...bytes], [...x], [ROWS, COLS, M], { device, worker }]);
        assert.equal(result.backend, device);
        verify(result.y);
        await page.close();
      });
    }
  });
});
