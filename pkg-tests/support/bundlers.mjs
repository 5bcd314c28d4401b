// What bundlers make of a page with as little configuration as the guide shows: each returns the folder to serve.

import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import * as esbuild from 'esbuild';
import * as vite from 'vite';
import webpack from 'webpack';

/** Functions of a project's folder and of a page: its HTML, its script, and the scripts that esbuild makes in its place. */
export const BUNDLERS = {
  // With nothing said of workers, the format of their scripts is Vite's choice.
  async vite(folder, { html }) {
    const dist = join(folder, 'dist-vite');
    const build = { outDir: dist, assetsInlineLimit: 0, rollupOptions: { input: join(folder, html) } };
    await vite.build({ root: folder, logLevel: 'warn', build });
    return dist;
  },

  async webpack(folder, { html, script }) {
    const dist = join(folder, 'dist-webpack');
    const stats = await promisify(webpack)({
      mode: 'production',
      context: folder,
      entry: { [script]: `./${script}.js` },
      output: { path: dist, filename: '[name].js', chunkFilename: '[contenthash].js' },
      performance: false,
    });
    assert.equal(stats.toString({ all: false, errors: true, warnings: true }), '');
    copyFileSync(join(folder, html), join(dist, html));
    return dist;
  },

  // It leaves the worker's URL alone, so that script is one more entry point.
  async esbuild(folder, { html, entryPoints, files = [] }) {
    const dist = join(folder, 'dist-esbuild');
    await esbuild.build({
      absWorkingDir: folder,
      entryPoints,
      outdir: dist,
      bundle: true,
      format: 'esm',
      logLevel: 'warning',
      loader: { '.wasm': 'file' },
      minify: true,
    });
    [html, ...files].forEach((file) => copyFileSync(join(folder, file), join(dist, basename(file))));
    return dist;
  },
};
