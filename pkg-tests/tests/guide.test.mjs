// What the guide shows of pages, their bundlers and Node. Other hosts have test files of their own.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { after, before, describe, test } from 'node:test';
import * as esbuild from 'esbuild';
import * as vite from 'vite';
import webpack from 'webpack';
import { launch } from '../support/browser.mjs';
import { writeSamples } from '../support/guide.mjs';
import { freshHost } from '../support/install.mjs';
import { ran } from '../support/ran.mjs';
import { serve } from '../support/serve.mjs';

const PRODUCT = '19 22 43 50';
const PAGE = '<!doctype html><meta charset="utf-8"><title>relampago</title><output id="result"></output>';

function prepared(name, title = name) {
  const folder = freshHost(`guide-${name}`);
  writeSamples(title, folder);
  return folder;
}

const node = (folder, ...args) => execFileSync('node', args, { cwd: folder, encoding: 'utf8' });

describe('the guide on pages', () => {
  let browser;
  before(async () => {
    browser = await launch();
  });
  after(() => browser?.close());

  async function verifyPage(url) {
    const page = await browser.newPage();
    const complaints = [];
    const ofPage = (message) => message.type() === 'error' && !message.location().url.endsWith('/favicon.ico');
    page.on('console', (message) => ofPage(message) && complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(String(error)));
    await page.goto(url);
    await page.waitForFunction(() => document.querySelector('#result').textContent !== '');
    assert.equal(await page.evaluate(() => document.querySelector('#result').textContent), PRODUCT);
    assert.deepEqual(complaints, []);
    await page.close();
  }

  async function verifyFolder(folder) {
    const server = await serve(folder);
    await verifyPage(`${server.url}/index.html`).finally(() => server.close());
  }

  test('a page that imports the package from its folder shows the product', async () => {
    const folder = prepared('plain', 'Plain page');
    cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
    await verifyFolder(folder);
  });

  test('the page of the service worker shows the product', async () => {
    const folder = prepared('service-worker', 'Service workers');
    cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
    writeFileSync(join(folder, 'index.html'), `${PAGE}<script type="module" src="page.js"></script>`);
    await verifyFolder(folder);
  });

  test('a page that Vite builds shows the product', async () => {
    const root = prepared('vite', 'Vite');
    await vite.build({ root, logLevel: 'warn', build: { assetsInlineLimit: 0 } });
    await verifyFolder(join(root, 'dist'));
    ran('Vite', 'build', vite);
  });

  test('a page from the development server of Vite shows the product', async () => {
    const root = prepared('vite-dev', 'Vite');
    const server = await vite.createServer({ root, logLevel: 'warn', server: { host: '127.0.0.1', port: 0 } });
    try {
      await server.listen();
      await verifyPage(`http://127.0.0.1:${server.httpServer.address().port}/`);
      ran('Vite', 'development server', vite);
    } finally {
      await server.close();
    }
  });

  test('a page that webpack builds without warnings shows the product', async () => {
    const folder = prepared('webpack');
    const dist = join(folder, 'dist');
    const stats = await promisify(webpack)({ mode: 'production', context: folder, entry: { page: './page.js' }, output: { path: dist }, performance: false });
    assert.equal(stats.toString({ all: false, errors: true, warnings: true }), '');
    writeFileSync(join(dist, 'index.html'), `${PAGE}<script src="page.js"></script>`);
    await verifyFolder(dist);
    ran('webpack', 'build', webpack);
  });

  test('a page that esbuild builds shows the product', async () => {
    const folder = prepared('esbuild');
    node(folder, 'build.js');
    writeFileSync(join(folder, 'dist/index.html'), `${PAGE}<script type="module" src="page.js"></script>`);
    await verifyFolder(join(folder, 'dist'));
    ran('esbuild', 'build', esbuild);
  });
});

describe('the guide in node', () => {
  test('Vite renders the product on the server, from sources and built', async () => {
    const root = prepared('vite-ssr', 'Vite SSR');
    assert.match(node(root, 'server.js'), new RegExp(PRODUCT));
    await vite.build({ root, logLevel: 'warn', build: { ssr: 'entry-server.js' } });
    writeFileSync(join(root, 'built.js'), "import { render } from './dist/entry-server.js';\nconsole.log(await render());\n");
    assert.match(node(root, 'built.js'), new RegExp(PRODUCT));
    ran('Vite', 'SSR', vite);
  });

  test('modules, CommonJS, a bundle', async () => {
    const folder = prepared('node', 'Node, Deno and Bun');
    await esbuild.build({
      absWorkingDir: folder,
      entryPoints: ['bundled.js'],
      bundle: true,
      platform: 'node',
      format: 'esm',
      outdir: 'dist',
      logLevel: 'error',
      loader: { '.wasm': 'file' },
    });
    for (const file of ['product.js', 'product.cjs', 'dist/bundled.js']) {
      assert.equal(node(folder, file), `simd ${PRODUCT}\n`, file);
    }
    ['modules', 'CommonJS', 'bundle'].forEach((what) => ran('Node', what, process));
  });
});
