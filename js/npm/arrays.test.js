import assert from 'node:assert/strict';
import test from 'node:test';
import vm from 'node:vm';
import { LOST, classOf, isLost, lengthOf, overlap, part, read, write } from './arrays.js';

const detached = () => {
    const array = new Float32Array(4);
    structuredClone(array.buffer, { transfer: [array.buffer] });
    return array;
};

test('the class of an array is that of its slots, in every realm', () => {
    assert.equal(classOf(vm.runInNewContext('new Float32Array(2)')), 'Float32Array');
    assert.equal(classOf({ [Symbol.toStringTag]: 'Float32Array' }), undefined);
    assert.equal(classOf(new Proxy(new Float32Array(1), {})), undefined);
});

test('only Float32Arrays, or bytes, have a length', () => {
    assert.equal(lengthOf(new Float32Array(3)), 3);
    assert.equal(lengthOf(vm.runInNewContext('new Float32Array(2)')), 2);
    assert.equal(lengthOf(new Uint8Array(3), true), 3);
    for (const other of [new Uint8Array(3), new Float64Array(1), [1], 'abc', undefined, null]) {
        assert.equal(lengthOf(other), -1);
    }
});

test('an array whose buffer was detached or became too short is lost', () => {
    assert.equal(lengthOf(detached()), LOST);
    const buffer = new ArrayBuffer(16, { maxByteLength: 16 });
    const array = new Float32Array(buffer, 8, 2);
    assert.ok(!isLost(array));
    buffer.resize(8);
    assert.ok(isLost(array));
    assert.equal(lengthOf(new Float32Array(0)), 0);
});

test('reading and writing stay within the array', () => {
    const array = Float32Array.of(1, 2, 3);
    const to = new Float32Array(2);
    assert.ok(read(array, 1, to));
    assert.deepEqual([...to], [2, 3]);
    assert.ok(!read(array, 2, to));
    assert.deepEqual([...to], [2, 3]);
    assert.ok(write(array, 0, Float32Array.of(7, 8)));
    assert.ok(!write(array, 2, Float32Array.of(9, 9)));
    assert.deepEqual([...array], [7, 8, 3]);
    assert.ok(!read(detached(), 0, to));
});

test('a part is a view of the same memory', () => {
    const array = Float32Array.of(1, 2, 3).subarray(1);
    const one = part(array, 1, 1);
    one[0] = 9;
    assert.deepEqual([...array], [2, 9]);
    assert.equal(part(array, 1, 2), undefined);
});

test('arrays overlap where they share bytes', () => {
    const { buffer } = new Float32Array(4);
    const at = (start, length) => new Float32Array(buffer, 4 * start, length);
    assert.ok(overlap(at(0, 2), at(1, 2)));
    assert.ok(!overlap(at(0, 2), at(2, 2)));
    assert.ok(!overlap(at(0, 2), new Float32Array(2)));
    const shared = new SharedArrayBuffer(16);
    assert.ok(overlap(new Float32Array(shared), new Float32Array(shared)));
});
