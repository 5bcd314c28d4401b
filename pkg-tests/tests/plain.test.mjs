// No bundler: pages import the package's files by path.

import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENGINES } from '../support/browser.mjs';
import { inBrowser } from '../support/in-browser.mjs';

inBrowser('plain', (folder) => {
  cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
  for (const file of ['page.js', 'worker.js']) {
    const source = readFileSync(join(folder, file), 'utf8');
    writeFileSync(join(folder, file), source.replace("'relampago'", "'./relampago/index.js'"));
  }
  return folder;
}, { engines: ENGINES });
