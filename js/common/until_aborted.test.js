import assert from 'node:assert/strict';
import test from 'node:test';
import { untilAborted } from './until_aborted.js';

const reason = (signal) => new Error(`aborted: ${signal.reason}`);

test('without a signal the work settles', async () => {
    assert.equal(await untilAborted(undefined, async () => 1, reason), 1);
    await assert.rejects(untilAborted(undefined, async () => Promise.reject(new Error('own')), reason), /own/);
});

test('a signal that has aborted keeps work from starting', async () => {
    const start = () => assert.fail('it started');
    await assert.rejects(untilAborted(AbortSignal.abort('early'), start, reason), /aborted: early/);
});

test('an abort rejects at once and cancels the work once', async () => {
    const { signal, controller = new AbortController() } = {};
    let cancelled = 0;
    const work = untilAborted(signal ?? controller.signal, () => new Promise(() => {}), reason, () => cancelled++);
    controller.abort('late');
    await assert.rejects(work, /aborted: late/);
    assert.equal(cancelled, 1);
});

test('after the end an abort cancels nothing', async () => {
    const controller = new AbortController();
    const cancel = () => assert.fail('it was cancelled');
    assert.equal(await untilAborted(controller.signal, async () => 1, reason, cancel), 1);
    controller.abort();
});
