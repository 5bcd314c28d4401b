import assert from 'node:assert/strict';
import test from 'node:test';
import * as shape from './shape.js';

const throws = (f, code, message) => assert.throws(f, { code, message });

test('shapes are lists of at most six whole numbers', () => {
    const given = [2, 0, 3];
    assert.deepEqual(shape.checkedShape('full', given), given);
    assert.notEqual(shape.checkedShape('full', given), given);
    const refuse = (value) => () => shape.checkedShape('full', value);
    throws(refuse(3), 'INVALID_ARGUMENT', 'full: `shape` is 3, but must be an array of numbers');
    throws(refuse([2, 1.5]), 'INVALID_ARGUMENT', 'full: `shape[1]` is 1.5, but must be a whole number from 0');
    throws(refuse(Array(7).fill(1)), 'LIMIT_EXCEEDED', 'full: shape [1, 1, 1, 1, 1, 1, 1] has 7 axes, but at most 6 are possible');
    throws(refuse([2 ** 29]), 'SHAPE_OVERFLOW', /536870912 elements, but at most 536870911/);
});

test('axes count from either end, and are named once', () => {
    assert.equal(shape.axisOf('sum', -1, [2, 3]), 1);
    assert.deepEqual(shape.axesOf('sum', [-1, 0], [2, 3, 4]), [0, 2]);
    assert.deepEqual(shape.axesOf('sum', undefined, [2, 3]), [0, 1]);
    throws(() => shape.axisOf('sum', 2, [2, 3]), 'INVALID_ARGUMENT', 'sum: `axis` is 2, but must be from -2 to 1 for shape [2, 3]');
    throws(() => shape.axisOf('sum', 0, []), 'INVALID_ARGUMENT', 'sum: `axis` is 0, a scalar has none');
    throws(() => shape.axesOf('sum', [0, -2], [2, 3]), 'INVALID_ARGUMENT', 'sum: `axis` [0, -2] names an axis twice');
});

test('shapes broadcast by their last axes', () => {
    const cases = [
        [[2, 3], [3], [2, 3]], [[2, 1], [1, 3], [2, 3]], [[], [4], [4]], [[0], [1], [0]], [[5, 1, 2], [], [5, 1, 2]],
    ];
    for (const [a, b, both] of cases) {
        assert.deepEqual(shape.pairBroadcast(a, b), both);
        assert.deepEqual(shape.pairBroadcast(b, a), both);
    }
    assert.equal(shape.pairBroadcast([2], [3]), undefined);
    const message = 'where: `b` has shape [4], which does not broadcast with [2, 3] of `a`';
    throws(() => shape.broadcast('where', [['a', [2, 3]], ['b', [4]]]), 'SHAPE_MISMATCH', message);
});

test('a length of −1 keeps the number of elements', () => {
    assert.deepEqual(shape.reshaped('reshape', [2, 6], [3, -1]), [3, 4]);
    assert.deepEqual(shape.reshaped('reshape', [], [1, -1]), [1, 1]);
    throws(() => shape.reshaped('reshape', [2, 6], [5, -1]), 'SHAPE_MISMATCH', /does not divide into \[5, -1\]/);
    throws(() => shape.reshaped('reshape', [0], [0, -1]), 'SHAPE_MISMATCH', /does not divide/);
    throws(() => shape.reshaped('reshape', [2], [3]), 'SHAPE_MISMATCH', 'reshape: [3] has 3 elements, but shape [2] has 2');
});

test('a reduction removes axes or leaves their length 1', () => {
    assert.deepEqual(shape.reduced([2, 3, 4], [0, 2], false), [3]);
    assert.deepEqual(shape.reduced([2, 3, 4], [0, 2], true), [1, 3, 1]);
});

test('a range selects what slices in Python select', () => {
    const length = 5;
    const all = Array.from({ length }, (_, i) => i);
    const selected = (range) => {
        const { start, step, length: count } = shape.rangeOf('slice', range, 0, length);
        return Array.from({ length: count }, (_, i) => all[start + i * step]);
    };
    const cases = [
        [[], all], [[1, 3], [1, 2]], [[-2], [3, 4]], [[null, null, -1], [4, 3, 2, 1, 0]], [[0, 5, 2], [0, 2, 4]],
        [[3, 1], []], [[4, 0, -2], [4, 2]], [[undefined, -1], [0, 1, 2, 3]],
    ];
    for (const [range, expected] of cases) {
        assert.deepEqual(selected(range), expected);
    }
    throws(() => selected([0, 6]), 'INVALID_ARGUMENT', 'slice: range 0 is [0, 6], but axis 0 has 5 elements');
    throws(() => selected([0, 1, 0]), 'INVALID_ARGUMENT', /the step of range 0 is 0/);
    throws(() => selected([0, 1, 1, 1]), 'INVALID_ARGUMENT', /must be \[start, end, step\]/);
});

test('values in errors have a text, also symbols in lists', () => {
    assert.equal(shape.shown([1, Symbol('a'), 'b']), "[1, Symbol(a), 'b']");
});
