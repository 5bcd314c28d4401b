import assert from 'node:assert/strict';
import test from 'node:test';
import { host } from './host.js';
import { kindOf } from './http.js';
import { readRange } from './remote_range.js';

const CONTENT = Uint8Array.from({ length: 100 }, (_, i) => i);
const file = { url: 'http://host/model', size: 100, version: '"a"' };

Object.assign(host.download, { attempts: 3, waitMs: 1 });

/** Has `fetch` answer requests in turn: each function takes the first and the last byte that are asked for. */
const serve = (t, ...answers) => {
    const asked = [];
    t.mock.method(globalThis, 'fetch', async (_, { headers }) => {
        const [from, to] = /bytes=(\d+)-(\d+)/.exec(headers.range).slice(1).map(Number);
        asked.push([from, to]);
        const respond = answers.length > 1 ? answers.shift() : answers[0];
        return respond(from, to);
    });
    return asked;
};

const range = (from, to, { etag = '"a"', end = to } = {}) =>
    new Response(CONTENT.slice(from, end + 1), { status: 206, headers: { etag, 'content-range': `bytes ${from}-${to}/100` } });

const read = async (signal) => {
    const bytes = new Uint8Array(20);
    let arrived = 0;
    await readRange(file, 10, bytes, signal, (count) => (arrived += count));
    return { bytes: [...bytes], arrived };
};

const EXPECTED = { bytes: [...CONTENT.slice(10, 30)], arrived: 20 };

test('a range is read whole', async (t) => {
    const asked = serve(t, range);
    assert.deepEqual(await read(), EXPECTED);
    assert.deepEqual(asked, [[10, 29]]);
});

test('a range that breaks off goes on where it ended', async (t) => {
    const asked = serve(t, (from, to) => range(from, to, { end: 14 }), () => new Response('', { status: 503 }), range);
    assert.deepEqual(await read(), EXPECTED);
    assert.deepEqual(asked, [[10, 29], [15, 29], [15, 29]]);
});

test('attempts without progress end with an error that names the byte', async (t) => {
    const asked = serve(t, () => Promise.reject(new TypeError('offline')));
    const message = 'the model could not be loaded from http://host/model: it broke off 3 times, at last at byte 10 of 100: offline';
    await assert.rejects(read(), { code: 'NETWORK', message });
    assert.equal(asked.length, 3);
});

test('progress resets the number of attempts', async (t) => {
    // Four bytes more with each request, of twenty.
    serve(t, (from, to) => range(from, to, { end: Math.min(from + 3, to) }));
    assert.deepEqual(await read(), EXPECTED);
});

test('a file of another version is an error of the kind `changed`', async (t) => {
    serve(t, (from, to) => range(from, to, { etag: '"b"' }));
    await assert.rejects(read(), (error) => kindOf(error) === 'changed' && /its version is "b" of 100 bytes, but was "a"/.test(error.message));
});

test('an answer that is no range, or another one, is an error', async (t) => {
    serve(t, () => new Response(CONTENT, { status: 200, headers: { etag: '"a"' } }));
    await assert.rejects(read(), /the server answers 200 to a request for a range from byte 10 of 100/);
    t.mock.restoreAll();
    serve(t, (_, to) => range(0, to));
    await assert.rejects(read(), /the server answers 206/);
});

test('an abort ends the wait for another attempt', async (t) => {
    host.download.waitMs = 60_000;
    t.after(() => (host.download.waitMs = 1));
    serve(t, () => new Response('', { status: 500 }));
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error('stop')), 20);
    await assert.rejects(read(controller.signal), /stop/);
});
