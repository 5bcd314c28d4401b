import assert from 'node:assert/strict';
import test from 'node:test';
import { describe, failure, isSameFile, isTransient, kindOf } from './http.js';

const answer = (status, headers) => ({ status, headers: new Headers(headers) });
const DATE = 'Mon, 02 Jan 2023 00:00:00 GMT';

test('a range has the size of the whole file and its first byte', () => {
    const range = answer(206, { 'content-range': 'bytes 4-7/100', etag: '"a"' });
    assert.deepEqual(describe(range), { size: 100, version: '"a"', isExact: true, from: 4 });
    const whole = answer(200, { 'content-length': '100', etag: '"a"' });
    assert.deepEqual(describe(whole), { size: 100, version: '"a"', isExact: true, from: undefined });
});

test('compressed content has no size of the file', () => {
    const headers = { 'content-encoding': 'gzip', 'content-length': '10', etag: '"a"' };
    assert.equal(describe(answer(200, headers)).size, 0);
    assert.equal(describe(answer(206, { ...headers, 'content-range': 'bytes 0-0/10' })).from, undefined);
});

test('a weak or missing tag is exact with a date that is a second older than the answer', () => {
    const versionOf = (headers) => {
        const { version, isExact } = describe(answer(200, { 'content-length': '10', ...headers }));
        return [version, isExact];
    };
    assert.deepEqual(versionOf({ etag: 'W/"a"' }), ['W/"a"', false]);
    assert.deepEqual(versionOf({ etag: 'W/"a"', 'last-modified': DATE }), [`W/"a", ${DATE}, 10 bytes`, true]);
    assert.deepEqual(versionOf({ 'last-modified': DATE, date: DATE }), [undefined, false]);
    assert.deepEqual(versionOf({ 'last-modified': 'Tue, 01 Jan 1980 00:00:00 GMT' }), [undefined, false]);
    assert.deepEqual(versionOf({ etag: 'W/""' }), [undefined, false]);
});

test('two answers are of one file if their versions are, and no size differs', () => {
    const known = { size: 10, version: '"a"' };
    assert.ok(isSameFile(known, { size: 0, version: '"a"' }));
    assert.ok(!isSameFile(known, { size: 11, version: '"a"' }));
    assert.ok(!isSameFile({ size: 10 }, { size: 10 }));
});

test('a failed download has a kind where something can be done about it', () => {
    const error = failure('http://x/m', 'no', { kind: 'changed' });
    assert.deepEqual([error.code, kindOf(error)], ['NETWORK', 'changed']);
    assert.equal(kindOf(failure('http://x/m', 'no')), undefined);
    assert.deepEqual([404, 408, 429, 500, 503].map(isTransient), [false, true, true, true, true]);
});
