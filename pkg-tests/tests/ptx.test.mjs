// The entry for PTX: in Node, on a plain page, and bundled.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { build } from 'vite';
import { launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { bundle, verifyPtx } from '../support/verify-ptx.mjs';

describe('relampago/ptx', () => {
  let native;
  let folder;
  let inNode;
  before(() => {
    native = bundle('sm_90a');
    folder = fresh('ptx');
    const output = execFileSync('node', ['ptx-node.js'], { cwd: folder, encoding: 'utf8', maxBuffer: 1 << 26 });
    inNode = JSON.parse(output);
  });

  test('in node', () => {
    verifyPtx(inNode, native);
  });

  test('types name every target', () => {
    const types = readFileSync(join(folder, 'node_modules/relampago/ptx/relampago.d.ts'), 'utf8');
    const named = types.match(/type TargetName =([^;]*);/)[1].match(/\w+/g);
    assert.deepEqual(named, inNode.targets);
  });

  for (const [how, made] of [['without a bundler', unbundled], ['from Vite', bundled]]) {
    test(`in a page ${how}`, async () => {
      const server = await serve(await made(folder));
      const browser = await launch();
      try {
        const { result, requests } = await outcome(browser, `${server.url}/ptx.html`);
        verifyPtx(result, native);
        const modules = requests.filter((url) => url.endsWith('.wasm'));
        assert.equal(modules.length, 1);
        assert.match(modules[0], /relampago_ptx[^/]*\.wasm$/);
      } finally {
        await browser.close();
        server.close();
      }
    });
  }
});

function unbundled(folder) {
  const plain = join(folder, 'plain');
  cpSync(join(folder, 'node_modules/relampago'), join(plain, 'relampago'), { recursive: true });
  for (const file of ['ptx.html', 'ptx.js']) {
    cpSync(join(folder, file), join(plain, file));
  }
  const page = readFileSync(join(folder, 'ptx-page.js'), 'utf8');
  writeFileSync(join(plain, 'ptx-page.js'), page.replace("'relampago/ptx'", "'./relampago/ptx/index.js'"));
  return plain;
}

async function bundled(root) {
  const input = join(root, 'ptx.html');
  await build({ root, logLevel: 'warn', build: { assetsInlineLimit: 0, rollupOptions: { input } } });
  return join(root, 'dist');
}
