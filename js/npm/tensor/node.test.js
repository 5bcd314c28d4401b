import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Node, added, bitsOf, described, ordered, structure } from './node.js';

/** Returns a leaf, and a reduction along the first axis of its transposed elements. */
const graph = (fold = 0) => {
    const x = new Node(undefined, [2, 3], { source: new Float32Array(6) });
    const moved = new Node(undefined, [3, 2], { op: 'view', inputs: [x], parameters: [1, 0, 1, 1, 0, 0] });
    const sum = new Node(undefined, [2], { op: 'reduce', inputs: [moved], parameters: [fold, 0, 0] });
    return { x, sum };
};

test('graphs are described by words', () => {
    const { x, sum } = graph();
    const words = described(ordered([sum, x]), [sum, x]);
    assert.deepEqual([...new Int32Array(words.buffer)], [
        2, 2, 0,
        0, 2, 2, 3, 0, 0,
        4, 2, 3, 2, 1, 0, 6, 1, 0, 1, 1, 0, 0,
        6, 1, 2, 1, 1, 3, 0, 0, 0,
    ]);
});

test('words describe nodes that are added to a graph', () => {
    const { x, sum } = graph();
    const order = ordered([sum]);
    // A product of the sum with itself, whose index among operations is the first parameter, and an empty view of it.
    const words = Int32Array.of(
        2, 4, 0,
        11, 1, 2, 2, 2, 2, 0,
        4, 2, 0, 2, 1, 3, 5, -1, 0, 1, 1, 0,
    );
    const [empty, first] = added(words, order);
    assert.equal(first, x);
    assert.deepEqual([empty.shape, empty.isLeaf, empty.source.length], [[0, 2], true, 0]);
    const [product] = added(Int32Array.of(1, 3, 11, 1, 2, 2, 2, 2, 1, 7), order);
    assert.deepEqual([product.op, product.shape, product.parameters], ['matmul', [2], [7]]);
    assert.deepEqual(product.inputs, [sum, sum]);
});

test('parameters of numbers are their bits', () => {
    assert.deepEqual(bitsOf([1, -0]), [0x3f800000, -(2 ** 31)]);
});

test('structures differ by shapes and parameters', () => {
    const key = (results) => structure(ordered(results), results);
    const [first, second] = [graph(), graph()];
    assert.equal(key([first.sum]), key([second.sum]));
    assert.notEqual(key([first.sum]), key([graph(1).sum]));
    assert.notEqual(key([first.sum]), key([first.sum, first.x]));
});

test('graphs have each node once, and none that no result needs', () => {
    const x = new Node(undefined, [2], { source: new Float32Array(2) });
    const of = (op, ...inputs) => new Node(undefined, [2], { op, inputs });
    const shared = of('relu', x);
    of('exp', shared);
    const result = of('vecAdd', of('sqrt', shared), shared);
    assert.deepEqual(ordered([result, shared]).map(({ op }) => op), ['leaf', 'relu', 'sqrt', 'vecAdd']);
});
