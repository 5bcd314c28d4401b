import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import webpack from 'webpack';
import { inBrowser } from '../support/in-browser.mjs';

inBrowser('webpack', async (folder) => {
  const dist = join(folder, 'dist');
  const stats = await promisify(webpack)({
    mode: 'production',
    context: folder,
    entry: { page: './page.js', 'worker-page': './worker-page.js' },
    output: { path: dist, assetModuleFilename: '[name]-[hash][ext]' },
  });
  if (stats.hasErrors()) {
    throw new Error(stats.toString({ all: false, errors: true }));
  }
  for (const page of ['index.html', 'worker.html']) {
    copyFileSync(join(folder, page), join(dist, page));
  }
  return dist;
});
