// Loading the module in Node, as it is and in bundles, where the module does not lie beside the script.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import * as esbuild from 'esbuild';
import { fresh } from '../support/install.mjs';

const MODULES = {
  relampago: 'relampago_simd128.wasm',
  'relampago/static': 'relampago_simd128.wasm',
  'relampago/ptx': 'ptx/relampago_ptx.wasm',
  'relampago/numeric': 'numeric/relampago_numeric.wasm',
  'relampago/train': 'train/relampago_train.wasm',
};
const LATER = ['nothing', 'missing', 'name', 'number', 'rejection', 'unreachable', 'bytes'];
const NOT_LOADED = {
  missing: /nowhere\.wasm: ENOENT/,
  name: / relampago\.wasm: /,
  path: / \/.*relampago_\w+\.wasm: /,
  relative: / \/_next\/a\.wasm: /,
  unreachable: / http:\/\/127\.0\.0\.1:9\/relampago\.wasm: /,
  text_of_no_module: / an object \(Uint8Array\): /,
  number: / 5: /,
  rejection: /no such promise/,
};

async function bundle(folder, script, format) {
  const outfile = join(folder, 'dist', `${script}.${format === 'cjs' ? 'cjs' : 'mjs'}`);
  await esbuild.build({
    absWorkingDir: folder, entryPoints: [script], outfile, bundle: true, platform: 'node', format: format === 'cjs' ? 'cjs' : 'esm',
    // What a CommonJS bundle has in place of top-level await.
    logOverride: { 'empty-import-meta': 'silent' },
  });
  return outfile;
}

describe('init in Node', () => {
  let folder;
  before(() => {
    folder = fresh('init');
  });

  for (const [entry, module] of Object.entries(MODULES)) {
    const run = (script, order) => {
      const path = join(folder, 'node_modules/relampago', module);
      return JSON.parse(execFileSync('node', [script, path, order.join()], { cwd: folder, encoding: 'utf8' }));
    };
    const script = `init-${entry.replaceAll('/', '-')}.js`;
    const write = () => {
      const source = readFileSync(join(folder, 'init-node.js'), 'utf8').replace("'relampago'", `'${entry}'`);
      writeFileSync(join(folder, script), source);
    };

    for (const first of ['nothing', 'url', 'text', 'alien', 'bytes']) {
      test(`${entry} loads from ${first}, once`, () => {
        write();
        const outcomes = run(script, [first, ...LATER]);
        assert.deepEqual(outcomes.slice(0, -1), Array(1 + LATER.length).fill('done'));
        assert.match(outcomes.at(-1), /^file:.*\.wasm$/);
      });
    }

    test(`${entry} says what is not there, and loads afterwards`, () => {
      write();
      verifyErrors(run(script, [...Object.keys(NOT_LOADED), 'nothing', ...LATER]), NOT_LOADED, LATER.length + 1);
    });

    test(`${entry} names the line that Next's server needs where Next bundles it`, () => {
      write();
      const env = { ...process.env, NEXT_RUNTIME: 'nodejs' };
      const path = join(folder, 'node_modules/relampago', module);
      const output = execFileSync('node', [script, path, 'missing'], { cwd: folder, encoding: 'utf8', env });
      assert.match(JSON.parse(output)[0][1], /; add 'relampago' to serverExternalPackages in next\.config, or give init\(\)/);
    });

    for (const format of ['esm', 'cjs']) {
      test(`${entry} in a bundle by esbuild, ${format}`, async () => {
        write();
        const place = format === 'esm' ? /\/dist\/relampago_\w+\.wasm: ENOENT/ : /import\.meta\.url/;
        const bundled = await bundle(folder, script, format);
        const expected = { nothing: place, ...NOT_LOADED };
        const outcomes = run(bundled, [...Object.keys(expected), 'bytes', ...LATER]);
        verifyErrors(outcomes, expected, LATER.length + 1);
        const url = outcomes.at(-1);
        format === 'esm' ? assert.match(url, /^file:/) : assert.equal(url[0], 'NOT_LOADED');
        assert.equal(run(bundled, ['url', ...LATER]).filter((outcome) => outcome === 'done').length, LATER.length + 1);
      });
    }
  }
});

/** Errors with code, place and what to do; then as many calls that do what they should. */
function verifyErrors(outcomes, expected, done) {
  Object.entries(expected).forEach(([source, place], i) => {
    const [code, message] = outcomes[i];
    assert.equal(code, 'NOT_LOADED', source);
    assert.match(message, place, source);
    assert.match(message, /give init\(\)/, source);
  });
  assert.deepEqual(outcomes.slice(Object.keys(expected).length, -1), Array(done).fill('done'));
}
