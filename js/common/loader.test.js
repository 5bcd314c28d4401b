import assert from 'node:assert/strict';
import test from 'node:test';
import { loader, located } from './loader.js';

const url = () => new URL('file:///package/module.wasm');

test('a module is loaded once, from what init() was given or its own place', async () => {
    const loaded = [];
    const load = async ({ module_or_path }) => void loaded.push(module_or_path);
    const bytes = new Uint8Array(8);
    const init = loader(load, url);
    await Promise.all([init(Promise.resolve(bytes)), init(new Uint8Array(1))]);
    await loader(load, url)(undefined, String);
    assert.deepEqual(loaded, [bytes, 'file:///package/module.wasm']);
});

test('a failure names the source, and the next call tries again', async () => {
    let attempts = 0;
    const init = loader(async () => {
        if (attempts++ === 0) {
            throw new Error('no network');
        }
    }, url);
    const expected = {
        code: 'NOT_LOADED',
        message: 'the WebAssembly module could not be loaded from file:///package/module.wasm: no network; '
            + "give init() the bytes of the package's .wasm file, or its URL",
    };
    await assert.rejects(init(undefined, String), expected);
    await init(undefined, String);
    assert.equal(attempts, 2);
});

test('a source that rejects is an error of init()', async () => {
    const init = loader(async () => {}, url);
    await assert.rejects(init(Promise.reject(new Error('gone'))), { code: 'NOT_LOADED', message: /from what init\(\) was given: gone/ });
});

test('a bundle without import.meta.url gives an error with a code', () => {
    const moduleUrl = located(() => new URL('./a.wasm', undefined));
    assert.throws(moduleUrl, { code: 'NOT_LOADED', message: /the bundle lacks import\.meta\.url/ });
});
