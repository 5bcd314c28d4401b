import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import webpack from 'webpack';
import { inBrowser } from '../support/in-browser.mjs';

const pages = ['index.html', 'worker.html', 'views.html'];

inBrowser('webpack', async (folder) => {
  const dist = join(folder, 'dist');
  const stats = await promisify(webpack)({
    mode: 'production',
    context: folder,
    entry: { page: './page.js', 'worker-page': './worker-page.js', 'views-page': './views-page.js' },
    output: { path: dist, assetModuleFilename: '[name]-[hash][ext]' },
  });
  if (stats.hasErrors()) {
    throw new Error(stats.toString({ all: false, errors: true }));
  }
  for (const page of pages) {
    copyFileSync(join(folder, page), join(dist, page));
  }
  return dist;
}, { pages });
