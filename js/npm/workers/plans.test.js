import assert from 'node:assert/strict';
import test from 'node:test';
import { plans } from './plans.js';

test('small products are not divided', () => {
    const a = new Float32Array(256 * 256);
    assert.equal(plans.matmul(4, a, a, 256, 256, 256), undefined);
    assert.equal(plans.matmul(4, a, a, 65536, 1, 65536), undefined);
});

test('the parts of a product have all rows once', () => {
    const [m, k, n] = [1000, 512, 512];
    const a = Float32Array.from({ length: m * k }, (_, i) => Math.floor(i / k));
    const b = new Float32Array(k * n);
    const parts = plans.matmul(3, a, b, m, k, n);
    assert.equal(parts.length, 3);
    let row = 0;
    for (const { values: [rows, same, count, ...sizes], length } of parts) {
        assert.equal(rows[0], row);
        assert.deepEqual([rows.length, same, sizes, length], [count * k, b, [k, n], count * n]);
        row += count;
    }
    assert.equal(row, m);
});

test('the parts of a convolution read the rows that their windows cover', () => {
    const options = { inputRows: 600, inputCols: 600, kernelRows: 11, kernelCols: 11 };
    const input = Float32Array.from({ length: 600 * 600 }, (_, i) => Math.floor(i / 600));
    const parts = plans.convolve2d(2, input, new Float32Array(121), options);
    const rows = parts.map(({ values: [part, , { inputRows }], length }) => [part[0], inputRows, length / 590]);
    const [[, , first], [start, , second]] = rows;
    assert.equal(start, first);
    assert.equal(first + second, 590);
    assert.deepEqual(rows.map(([, read, made]) => read - made), [10, 10]);
});

test('padding stays where the image ends, and its rows elsewhere are skipped', () => {
    const options = { inputRows: 600, inputCols: 600, kernelRows: 11, kernelCols: 11, padding: 'same' };
    const parts = plans.convolve2d(2, new Float32Array(600 * 600), new Float32Array(121), options);
    assert.deepEqual(parts.map(({ skipped }) => skipped), [0, 5 * 600]);
    assert.equal(parts.reduce((sum, { length }) => sum + length, 0), 600 * 600);
    assert.equal(plans.convolve2d(2, new Float32Array(600 * 600), new Float32Array(121), { ...options, strideRows: 2 }), undefined);
});
