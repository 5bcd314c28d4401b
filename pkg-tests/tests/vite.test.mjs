import { join } from 'node:path';
import { build } from 'vite';
import { inBrowser } from '../support/in-browser.mjs';

inBrowser('vite', async (folder) => {
  await build({
    root: folder,
    logLevel: 'warn',
    worker: { format: 'es' },
    build: {
      // The pages' policy allows no data: URLs, which Vite makes of small files.
      assetsInlineLimit: 0,
      rollupOptions: { input: ['index.html', 'worker.html'].map((page) => join(folder, page)) },
    },
  });
  return join(folder, 'dist');
});
