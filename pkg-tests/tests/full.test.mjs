// The full edition: all of the other one's tests, and those of what it adds.

import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { launch } from '../support/browser.mjs';
import { inBrowser } from '../support/in-browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { verifyTuning } from '../support/tuning.mjs';
import { verifyFull } from '../support/verify-full.mjs';

const PAGES = ['full-page.js', 'tuning-page.js'];

/** The folder, with the package where pages find it. */
function withPackage(folder) {
  cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
  for (const page of PAGES.map((name) => join(folder, name))) {
    const source = readFileSync(page, 'utf8');
    writeFileSync(page, source.replace("'relampago/full'", "'./relampago/full/index.js'"));
  }
  return folder;
}

inBrowser('full edition', withPackage, { pages: ['full.html'] });

describe('full edition, visit by visit', () => {
  test('what was measured is remembered', async () => {
    const server = await serve(withPackage(fresh('full-tuning')));
    const browser = await launch();
    try {
      await verifyTuning(await browser.newContext(), `${server.url}/tuning.html`);
    } finally {
      await browser.close();
      server.close();
    }
  });
});

describe('full edition in node', () => {
  test('on SIMD', () => {
    const folder = fresh('full-node');
    const output = execFileSync('node', ['full-node.js', 'simd'], { cwd: folder, encoding: 'utf8' });
    verifyFull(JSON.parse(output), 'simd');
  });
});
