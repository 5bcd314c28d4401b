import assert from 'node:assert/strict';
import test from 'node:test';
import { requireNames, requireViewOptions, shown } from './options.js';

const invalid = (message) => ({ code: 'INVALID_ARGUMENT', message });

test('an unknown option is refused with the nearest name', () => {
    requireNames({ backend: 'simd' }, ['backend', 'threads']);
    const refuse = (given) => () => requireNames(given, ['backend', 'threads'], 'create: ');
    assert.throws(refuse({ bakend: 1 }), invalid('create: there is no option `bakend`; did you mean `backend`?'));
    assert.throws(refuse({ Threads: 1 }), invalid('create: there is no option `Threads`; did you mean `threads`?'));
});

test('an unknown option that is near none is refused with all names', () => {
    const message = 'there is no option `colour`; there are `backend`, `threads`';
    assert.throws(() => requireNames({ colour: 1 }, ['backend', 'threads']), invalid(message));
});

test('options that are no object are refused', () => {
    assert.throws(() => requireNames(3, ['signal'], 'run: '), invalid('run: `options` is 3, but must be an object'));
    assert.throws(() => requireNames('x', ['k'], '`policy`: '), invalid("`policy` is 'x', but must be an object"));
});

test('a signal in place of options is refused with the right form', () => {
    const message = '`options` is an AbortSignal, but must be { signal }';
    assert.throws(() => requireNames(new AbortController().signal, ['signal']), invalid(message));
});

test('a view has a layout or strides', () => {
    requireViewOptions({ strides: [1] });
    const message = 'TensorView: a view has a `layout` or `strides`, but not both';
    assert.throws(() => requireViewOptions({ layout: 'row', strides: [1] }), invalid(message));
});

test('values of every type have a text', () => {
    const texts = [
        [undefined, 'undefined'], [null, 'null'], ['1', "'1'"], [1n, '1n'], [-0, '0'], [Symbol('a'), 'Symbol(a)'],
        [[1], 'an object (Array)'], [Object.create(null), 'an object (undefined)'],
        [Promise.resolve(), 'a Promise that was not awaited'],
    ];
    for (const [value, text] of texts) {
        assert.equal(shown(value), text);
    }
});
