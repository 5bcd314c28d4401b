// Runs the module that is named by the first argument, and prints how long a product takes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const module = new WebAssembly.Module(readFileSync(process.argv[2]));
const imports = {};
for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    assert.equal(kind, 'function', `${from} ${name}`);
    (imports[from] ??= {})[name] = () => {
        throw new Error(`${name} was called`);
    };
}
const { exports } = new WebAssembly.Instance(module, imports);

assert.equal(exports.has_simd128(), 1, 'kernels are compiled to simd128');
assert.equal(exports.multiply(64), 64 * 16 * (0 + 1 + 2 + 3) * 2);
const times = Array.from({ length: 12 }, () => {
    const start = performance.now();
    exports.multiply(512);
    return performance.now() - start;
});
console.log(`matmul 512: ${Math.min(...times).toFixed(1)} ms`);
