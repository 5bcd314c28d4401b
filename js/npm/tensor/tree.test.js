import assert from 'node:assert/strict';
import { test } from 'node:test';
import { arranged } from './tree.js';

const options = {
    nodeOf: (value) => (typeof value === 'string' ? value : undefined),
    failed: (reason) => new Error(reason),
};

test('nodes are put into the places of others', () => {
    const nodes = [];
    const arrange = arranged({ a: 'x', list: ['y', { b: 'z' }], none: [] }, nodes, options);
    assert.deepEqual(nodes, ['x', 'y', 'z']);
    assert.deepEqual(arrange([1, 2, 3]), { a: 1, list: [2, { b: 3 }], none: [] });
});

test('a node stands in several places, and an object too', () => {
    const nodes = [];
    const shared = ['x'];
    const arrange = arranged([shared, shared], nodes, options);
    assert.deepEqual(arrange([1, 2]), [[1], [2]]);
});

test('what is no tree is refused', () => {
    const cycle = { inner: [] };
    cycle.inner.push(cycle);
    const refuse = (value, reason) => assert.throws(() => arranged(value, [], options), new RegExp(`^Error: ${reason}$`));
    refuse(cycle, 'cycle');
    refuse([Promise.reject(new Error('unheard'))], 'promise');
    for (const value of [1, undefined, new Date(), new Float32Array(2), () => 1]) {
        refuse({ value }, 'value');
    }
});
