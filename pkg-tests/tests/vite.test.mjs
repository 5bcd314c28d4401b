import { join } from 'node:path';
import { build } from 'vite';
import { inBrowser } from '../support/in-browser.mjs';

const pages = ['index.html', 'worker.html', 'views.html'];

inBrowser('vite', async (folder) => {
  await build({
    root: folder,
    logLevel: 'warn',
    worker: { format: 'es' },
    build: {
      // The pages' policy allows no data: URLs, which Vite makes of small files.
      assetsInlineLimit: 0,
      rollupOptions: { input: pages.map((page) => join(folder, page)) },
    },
  });
  return join(folder, 'dist');
}, { pages });
