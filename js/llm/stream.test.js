import assert from 'node:assert/strict';
import test from 'node:test';
import { inOrder } from './in_order.js';
import { chunks, reading, regroup, split } from './stream.js';

const pieces = (...lengths) => {
    let next = 0;
    return lengths.map((length) => Uint8Array.from({ length }, () => next++));
};
const collect = async (iterable) => {
    const all = [];
    for await (const piece of iterable) {
        all.push([...piece]);
    }
    return all;
};

test('pieces are cut to a length, and joined to parts', async () => {
    assert.deepEqual(await collect(split(pieces(5, 1, 0), 2)), [[0, 1], [2, 3], [4], [5]]);
    assert.deepEqual(await collect(regroup(pieces(1, 3, 3), 2)), [[0, 1], [2, 3], [4, 5], [6]]);
    assert.deepEqual(await collect(regroup(pieces(4), 2)), [[0, 1], [2, 3]]);
    assert.deepEqual(await collect(regroup([], 2)), []);
});

test('a consumer that stops cancels the stream', async () => {
    let cancelled = false;
    const stream = new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(1)),
        cancel: () => void (cancelled = true),
    });
    for await (const piece of chunks(stream)) {
        assert.equal(piece.length, 1);
        break;
    }
    assert.ok(cancelled);
});

test('a body is read in pieces, with and without a reader of bytes', async () => {
    for (const body of [new Blob(pieces(3)).stream(), new ReadableStream({
        start(controller) {
            controller.enqueue(pieces(3)[0]);
            controller.close();
        },
    })]) {
        const read = reading(body);
        assert.deepEqual([...(await read()).value], [0, 1, 2]);
        assert.ok((await read()).done);
    }
});

test('parts are fetched three at a time, and come in order', async () => {
    const open = [];
    const started = [];
    const get = (index) => {
        started.push(index);
        return new Promise((resolve) => open.push(() => resolve(index)));
    };
    const parts = inOrder(5, get);
    const first = parts.next();
    await null;
    assert.deepEqual(started, [0, 1, 2]);
    open[2]();
    open[0]();
    assert.equal((await first).value, 0);
    const second = parts.next();
    await null;
    assert.deepEqual(started, [0, 1, 2, 3]);
    open.forEach((resolve) => resolve());
    assert.equal((await second).value, 1);
});

test('an error of a part aborts the others', async () => {
    const signals = [];
    const get = async (index, signal) => {
        signals.push(signal);
        if (index === 0) {
            throw new Error('first');
        }
    };
    await assert.rejects(inOrder(3, get).next(), /first/);
    assert.ok(signals.every(({ aborted }) => aborted));
});
