import assert from 'node:assert/strict';
import test from 'node:test';
import { apply } from './custom.js';

test('a function fills the result element by element', () => {
    const out = new Float32Array(2);
    const [x, y, z] = [Float32Array.of(1, 2), Float32Array.of(10, 20), Float32Array.of(100, 200)];
    assert.equal(apply((a, p) => a * p, [x], [3], out), undefined);
    assert.deepEqual([...out], [3, 6]);
    apply((a, b) => a + b, [x, y], [], out);
    assert.deepEqual([...out], [11, 22]);
    apply((a, b, c, p, q) => a + b + c + p + q, [x, y, z], [1000, 2000], out);
    assert.deepEqual([...out], [3111, 3222]);
});

test('a result that is no number, and an error, are reported as text', () => {
    const out = new Float32Array(1);
    assert.equal(apply(() => '1', [out], [], out), 'TypeError: it gave 1 and no number');
    const fail = () => {
        throw { toString: () => { throw new Error(); } };
    };
    assert.equal(apply(fail, [out], [], out), 'it threw what has no text');
});
