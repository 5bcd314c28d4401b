import assert from 'node:assert/strict';
import test from 'node:test';
import { file } from '#llm';
import { Arrival } from './arrival.js';

/** A device whose models take the rest of a file. */
const device = () => {
    const state = { begun: undefined, rest: 0, freed: 0 };
    const model = {
        write: async (piece) => void (state.rest += piece.length),
        finish: () => 'model',
        hasChatTemplate: () => true,
        free: () => state.freed++,
    };
    const begin = async (bytes, size, options) => {
        state.begun = { head: bytes.content.length, attempts: bytes.attempts, size, options };
        return model;
    };
    return { state, begin, free: () => state.freed++ };
};

test('the model begins with the bytes up to the end of the metadata, and gets the rest', async () => {
    file.headBytes = 25;
    const gpu = device();
    const arrival = new Arrival(gpu, 100, 'options');
    await Promise.all(Array.from({ length: 10 }, () => arrival.write(new Uint8Array(10))));
    // Looked for with each piece, since the reader goes on where it stopped.
    assert.deepEqual(gpu.state.begun, { head: 30, attempts: 3, size: 100, options: 'options' });
    assert.equal(gpu.state.rest, 70);
    assert.equal(await arrival.finish(), undefined);
    assert.ok(arrival.hasChatTemplate());
    assert.equal(await arrival.open(), 'model');
});

test('a file whose metadata do not end gives its bytes back', async () => {
    file.headBytes = Infinity;
    const arrival = new Arrival(device(), 30, {});
    arrival.write(new Uint8Array(30));
    const bytes = await arrival.finish();
    assert.equal(bytes.content.length, 30);
});

test('after an error all further pieces are refused with it', async () => {
    file.headBytes = 1;
    const gpu = device();
    gpu.begin = async () => Promise.reject(new Error('no memory'));
    const arrival = new Arrival(gpu, 30, {});
    for (let i = 0; i < 2; i++) {
        await assert.rejects(arrival.write(new Uint8Array(1)), /no memory/);
    }
    await assert.rejects(arrival.finish(), /no memory/);
    await arrival.free();
    assert.equal(gpu.state.freed, 1);
});

test('freeing waits for what is under way, and later pieces do nothing', async () => {
    file.headBytes = 10;
    const gpu = device();
    const arrival = new Arrival(gpu, 30, {});
    await arrival.write(new Uint8Array(10));
    const last = arrival.write(new Uint8Array(10));
    await arrival.free();
    await last;
    assert.deepEqual([gpu.state.rest, gpu.state.freed], [0, 2]);
});
