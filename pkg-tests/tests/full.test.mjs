// The full edition: all of the other one's tests, and those of what it adds.

import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { inBrowser } from '../support/in-browser.mjs';
import { fresh } from '../support/install.mjs';
import { verifyFull } from '../support/verify-full.mjs';

inBrowser('full edition', (folder) => {
  cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
  const page = join(folder, 'full-page.js');
  const source = readFileSync(page, 'utf8');
  writeFileSync(page, source.replace("'relampago/full'", "'./relampago/full/index.js'"));
  return folder;
}, { pages: ['full.html'] });

describe('full edition in node', () => {
  test('on SIMD', () => {
    const folder = fresh('full-node');
    const output = execFileSync('node', ['full-node.js', 'simd'], { cwd: folder, encoding: 'utf8' });
    verifyFull(JSON.parse(output), 'simd');
  });
});
