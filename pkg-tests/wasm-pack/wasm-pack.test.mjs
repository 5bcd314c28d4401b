// What wasm-pack builds runs by itself: for Node in Node, for the web in Chromium, and for bundlers by webpack.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import webpack from 'webpack';
import { launch, outcome } from '../support/browser.mjs';
import { serve } from '../support/serve.mjs';
import { EXPECTED, results } from './cases.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const built = process.env.WASM_PACK ?? join(root, 'target/wasm-pack');

/** The names of operations, in the order of their numbers. */
const table = execFileSync('cargo', 'run --quiet --no-default-features --example op_table js'.split(' '), { cwd: root, encoding: 'utf8' });
const ops = [...table.matchAll(/^ {4}\['(\w+)'/gm)].map(([, name]) => name);

/** Writes a page that computes on SIMD and on a GPU with the module that `load`, a script, makes; returns its script. */
function page(folder, load) {
  cpSync(new URL('cases.js', import.meta.url), join(folder, 'cases.js'));
  writeFileSync(join(folder, 'index.html'), '<!doctype html><meta charset="utf-8"><script type="module" src="main.js"></script>\n');
  const run = (backend) => `await results(module, ${JSON.stringify(ops)}, '${backend}')`;
  // webpack's script would otherwise wait for the module, and set the outcome after the page has loaded.
  return `import { results } from './cases.js';
globalThis.outcome = (async () => {
  const module = await import('./relampago_module.js');
  ${load}
  return [${run('simd')}, ${run('gpu')}];
})();
`;
}

async function inChromium(folder) {
  const [server, browser] = await Promise.all([serve(folder), launch()]);
  try {
    const { result } = await outcome(browser, `${server.url}/index.html`);
    assert.deepEqual(result, [{ backend: 'simd', ...EXPECTED }, { backend: 'webgpu', ...EXPECTED }]);
  } finally {
    await browser.close();
    server.close();
  }
}

test('the target nodejs runs in Node', async () => {
  const module = createRequire(import.meta.url)(join(built, 'nodejs/relampago_module.js'));
  assert.deepEqual(await results(module, ops, 'simd'), { backend: 'simd', ...EXPECTED });
});

test('the target web runs in Chromium', async () => {
  const folder = join(built, 'web');
  writeFileSync(join(folder, 'main.js'), page(folder, 'await module.default();'));
  await inChromium(folder);
});

test('the target bundler runs in Chromium', async () => {
  const folder = join(built, 'bundler');
  const dist = join(folder, 'dist');
  rmSync(dist, { recursive: true, force: true });
  writeFileSync(join(folder, 'entry.js'), page(folder, ''));
  const stats = await promisify(webpack)({
    mode: 'production',
    context: folder,
    entry: './entry.js',
    output: { path: dist, filename: 'main.js' },
    experiments: { asyncWebAssembly: true },
    performance: false,
  });
  assert.equal(stats.toString({ all: false, errors: true }), '');
  cpSync(join(folder, 'index.html'), join(dist, 'index.html'));
  await inChromium(dist);
});
