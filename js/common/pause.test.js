import assert from 'node:assert/strict';
import test from 'node:test';
import { pause } from './pause.js';

test('a pause lets other tasks run', async () => {
    const order = [];
    setImmediate(() => order.push('task'));
    await pause();
    order.push('pause');
    assert.deepEqual(order, ['task', 'pause']);
});

test('without setImmediate pauses resolve in order by messages', async (t) => {
    const { setImmediate } = globalThis;
    const { MessageChannel } = globalThis;
    delete globalThis.setImmediate;
    let channel;
    globalThis.MessageChannel = class extends MessageChannel {
        constructor() {
            super();
            channel = this;
        }
    };
    t.after(() => {
        Object.assign(globalThis, { setImmediate, MessageChannel });
        channel.port1.close();
    });
    const order = [];
    await Promise.all([1, 2, 3].map((i) => pause().then(() => order.push(i))));
    assert.deepEqual(order, [1, 2, 3]);
});
