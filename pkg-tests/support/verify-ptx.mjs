// What `relampago/ptx` says must be what the crate says: the texts of an example, byte for byte.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cargo, repository } from './native.mjs';

/** The example's folder, written anew. */
export function bundle(target) {
  const folder = join(repository, 'target/pkg-tests/ptx-bundle');
  cargo('build', ['--example', 'ptx_bundle']);
  const built = process.env.CARGO_TARGET_DIR ?? join(repository, 'target');
  execFileSync(join(built, 'debug/examples/ptx_bundle'), [target, folder], { stdio: 'pipe' });
  return folder;
}

export function verifyPtx(outcome, folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
  for (const { description, name, target, text, params, launch, registers, sharedBytes, dynamicSharedBytes } of outcome.kernels) {
    const what = `${JSON.stringify(description)}, ${name}`;
    assert.equal(text, readFileSync(join(folder, `${name}.ptx`), 'utf8'), what);
    assert.equal(target, 'sm_90a', what);
    const native = manifest.find((kernel) => kernel.name === name);
    assert.deepEqual(launch.block, native.block, what);
    assert.equal(launch.overlaps, native.overlaps, what);
    assert.equal(launch.grid.length, 3, what);
    assert.equal(dynamicSharedBytes, native.shared, what);
    assert.ok(sharedBytes >= dynamicSharedBytes, what);
    assert.deepEqual(params.map((param) => param.name), native.params.map((param) => param.name), what);
    assert.ok(registers >= 4 && registers < 1024, `${what}: ${registers} registers`);
  }
  verifyProduct(outcome);
  verifyRefusals(outcome.refused);
}

function verifyProduct({ product, grid, emptyGrid, module, targets }) {
  assert.deepEqual(product, {
    name: product.name,
    target: 'sm_70',
    params: ['a', 'b', 'c', 'm', 'n', 'k', 'alpha', 'beta', 'bias', 'batch', 'stride_a', 'stride_b', 'stride_c'],
  });
  assert.deepEqual(grid, [3, 8, 3]);
  assert.deepEqual(emptyGrid, [3, 0, 3]);
  assert.equal(module.match(/\.visible \.entry/g).length, 2);
  assert.match(module, /^\.version \d\.\d\n\.target sm_80\n/);
  assert.equal(targets[0], 'sm_70');
  assert.ok(targets.includes('sm_90a'));
}

function verifyRefusals(refused) {
  const expected = {
    'no object': ['INVALID_ARGUMENT', /description/],
    'no such kernel': ['INVALID_ARGUMENT', /fft/],
    'no such option': ['INVALID_ARGUMENT', /columns/],
    'no such type': ['INVALID_ARGUMENT', /f8/],
    'another type': ['INVALID_ARGUMENT', /u8/],
    'a missing option': ['INVALID_ARGUMENT', /format/],
    'a size that is none': ['INVALID_ARGUMENT', /1\.5/],
    'a size beyond its limit': ['INVALID_ARGUMENT', /512/],
    'no such target': ['INVALID_ARGUMENT', /sm_61/],
    'no target': ['INVALID_ARGUMENT', /target/],
    'too early a target': [
      'UNSUPPORTED',
      /^gemm_\w+ needs sm_90a itself, and the target is sm_80: ask for sm_90a$/,
    ],
    'a size that is missing': ['INVALID_ARGUMENT', /batch/],
    'too many matrices': ['LIMIT_EXCEEDED', /the grid along z, which is `batch`, is 65536, beyond the limit of 65535$/],
    'no sizes': ['INVALID_ARGUMENT', /sizes/],
    'no multiprocessors': ['INVALID_ARGUMENT', /multiprocessors/],
    'what was freed': ['DISPOSED', /PtxKernel/],
    'what was freed as an argument': ['DISPOSED', /PtxKernel/],
    'the same twice': ['INVALID_ARGUMENT', /gemm_tiled/],
  };
  assert.deepEqual(Object.keys(refused), Object.keys(expected));
  for (const [what, [code, message]] of Object.entries(expected)) {
    assert.equal(refused[what].name, 'RelampagoError', what);
    assert.equal(refused[what].code, code, what);
    assert.match(refused[what].message, message, what);
  }
}
