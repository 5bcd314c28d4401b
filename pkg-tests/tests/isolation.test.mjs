// A page whose server sends no headers is isolated by the guide's service worker, and then has threads.

import assert from 'node:assert/strict';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { launch } from '../support/browser.mjs';
import { writeSamples } from '../support/guide.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';

const PAGE = `<!doctype html>
<meta charset="utf-8">
<title>isolated by a service worker</title>
<script type="module" src="first.js"></script>
<script type="module" src="page.js"></script>
`;
const SCRIPT = `import init, { GpuDevice } from './relampago/index.js';
await init();
const device = await GpuDevice.create({ backend: 'simd', threads: 2 });
globalThis.outcome = { isolated: crossOriginIsolated, threads: device.info.threads };
`;

const folder = fresh('isolation', { files: [] });
cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
writeSamples('Without access to the server', folder, 'threads');
writeFileSync(join(folder, 'index.html'), PAGE);
writeFileSync(join(folder, 'page.js'), SCRIPT);

const plain = ({ 'cross-origin-opener-policy': _, 'cross-origin-embedder-policy': __, ...others }) => others;
const server = await serve(folder, { headers: plain });
const browser = await launch();
after(async () => {
  await browser.close();
  server.close();
});

test('the guide\'s service worker isolates a page', async () => {
  const page = await browser.newPage();
  await page.goto(`${server.url}/index.html`);
  await page.waitForFunction(() => globalThis.outcome?.isolated, undefined, { timeout: 60_000 });
  assert.deepEqual(await page.evaluate(() => globalThis.outcome), { isolated: true, threads: 2 });
});
