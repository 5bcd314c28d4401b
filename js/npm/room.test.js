import assert from 'node:assert/strict';
import test from 'node:test';
import { memory } from '#computing';
import { countRemote, isFull, makeRoom } from './room.js';

const STEP = 2 ** 27;

test('memory is full a step above the least that was in use', () => {
    assert.ok(!isFull());
    memory.module = STEP;
    assert.ok(!isFull());
    memory.gpu = 1;
    assert.ok(isFull());
    Object.assign(memory, { module: 0, gpu: 0 });
    assert.ok(!isFull());
});

test('room is made once at a time, in another task', async () => {
    let isLater = false;
    setImmediate(() => (isLater = true));
    const making = makeRoom();
    assert.equal(makeRoom(), making);
    await making;
    assert.ok(isLater);
    assert.notEqual(makeRoom(), making);
});

test('after a collection that found little, as much again may be used', async () => {
    memory.module = 4 * STEP;
    await makeRoom();
    memory.module = 5 * STEP;
    assert.ok(!isFull());
    memory.module = 5 * STEP + 1;
    assert.ok(isFull());
});

test('a productive collection lowers the bound again', async () => {
    memory.module = 8 * STEP;
    const making = makeRoom();
    memory.module = STEP;
    await making;
    assert.ok(!isFull());
    memory.module = 2 * STEP + 1;
    assert.ok(isFull());
    memory.module = 0;
});

test('bytes that workers hold count', async () => {
    isFull();
    countRemote(2 * STEP);
    assert.ok(isFull());
    await makeRoom();
    countRemote(-2 * STEP);
    assert.ok(!isFull());
});
