import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { coreCount, obstacle, sharedMemory } from './shared_memory.js';

const { Memory } = WebAssembly;

afterEach(() => {
    WebAssembly.Memory = Memory;
    delete globalThis.crossOriginIsolated;
});

test('a core that runs two threads counts once', () => {
    assert.deepEqual([1, 2, 4, 6, 12, 16, 64].map((threads) => coreCount(threads)), [1, 2, 4, 3, 6, 8, 8]);
});

test('pages without isolation share no memory', () => {
    assert.equal(obstacle(), undefined);
    globalThis.crossOriginIsolated = false;
    assert.match(obstacle(), /isolated/);
});

test('a memory is as large as the engine allows', () => {
    const asked = [];
    WebAssembly.Memory = class {
        constructor({ maximum }) {
            asked.push(maximum);
            if (maximum > 2 ** 14) {
                throw new RangeError('no room');
            }
        }
    };
    sharedMemory();
    assert.deepEqual(asked, [2 ** 16, 2 ** 15, 2 ** 14]);
});

test('an engine without room is an error', () => {
    WebAssembly.Memory = class {
        constructor() {
            throw new RangeError('no room');
        }
    };
    assert.throws(sharedMemory, { code: 'OUT_OF_MEMORY', message: /no room/ });
});

test('the memory is shared', () => {
    assert.ok(sharedMemory().buffer instanceof SharedArrayBuffer);
});
