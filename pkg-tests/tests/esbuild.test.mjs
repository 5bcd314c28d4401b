import { BUNDLERS } from '../support/bundlers.mjs';
import { inBrowser } from '../support/in-browser.mjs';

const bundle = (folder) => BUNDLERS.esbuild(folder, { html: 'index.html', entryPoints: { page: 'esbuild-page.js' } });

inBrowser('esbuild', bundle, { pages: ['index.html'], module: 'simd128' });
