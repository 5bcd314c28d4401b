// The package's types, checked as strictly as TypeScript can, declarations included.

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { before, describe, test } from 'node:test';
import { fresh } from '../support/install.mjs';

const tsc = fileURLToPath(new URL('../node_modules/.bin/tsc', import.meta.url));
const STRICT = ['--strict', '--skipLibCheck', 'false', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'];
const TARGET = ['--noEmit', '--target', 'esnext', '--lib', 'esnext,dom', '--types', ''];

describe('types', () => {
  let folder;
  before(() => {
    folder = fresh('types');
  });
  for (const [module, resolution] of [['nodenext', 'nodenext'], ['esnext', 'bundler']]) {
    test(`tsc --strict, ${resolution} resolution`, () => {
      const how = ['--module', module, '--moduleResolution', resolution];
      try {
        execFileSync(tsc, [...STRICT, ...TARGET, ...how, 'types.ts', 'full-types.ts', 'ptx-types.ts'], { cwd: folder, encoding: 'utf8' });
      } catch (error) {
        throw new Error(error.stdout);
      }
    });
  }
});
