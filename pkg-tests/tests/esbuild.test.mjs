import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { inBrowser } from '../support/in-browser.mjs';

async function bundle(folder) {
  const dist = join(folder, 'dist');
  await build({
    absWorkingDir: folder,
    entryPoints: { page: 'esbuild-page.js' },
    outdir: dist,
    bundle: true,
    format: 'esm',
    logLevel: 'warning',
    loader: { '.wasm': 'file' },
    minify: true,
  });
  copyFileSync(join(folder, 'index.html'), join(dist, 'index.html'));
  return dist;
}

inBrowser('esbuild', bundle, { pages: ['index.html'], module: 'simd128' });
