import assert from 'node:assert/strict';
import test from 'node:test';
import { moduleUrl } from './instructions.js';

test('the module for this engine lies beside the script', () => {
    assert.match(moduleUrl().href, /\/common\/relampago_(relaxed|simd128)\.wasm$/);
});

test('an engine without SIMD is refused', (t) => {
    t.mock.method(WebAssembly, 'validate', () => false);
    assert.throws(moduleUrl, { code: 'UNSUPPORTED', message: 'this engine lacks WebAssembly SIMD' });
});
