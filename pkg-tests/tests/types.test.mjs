// The package's types, checked as strictly as TypeScript can, declarations included, by the oldest version that
// knows of an array's memory and by later ones.

import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { before, describe, test } from 'node:test';
import { fresh } from '../support/install.mjs';

const modules = fileURLToPath(new URL('../node_modules/', import.meta.url));
const STRICT = ['--strict', '--skipLibCheck', 'false', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'];
const TARGET = ['--noEmit', '--target', 'esnext', '--lib', 'esnext,dom'];
const FILES = ['types.ts', 'views-types.ts', 'tensors-types.ts', 'numeric-types.ts', 'llm-types.ts', 'ptx-types.ts'];
// Each by its folder, with what tells it of `GPUDevice`, which later ones know.
const COMPILERS = { 'typescript-5.7': ['--types', '@webgpu/types'], 'typescript-6': [], typescript: [] };

describe('types', () => {
  let folder;
  before(() => {
    folder = fresh('types');
    cpSync(join(modules, '@webgpu'), join(folder, 'node_modules/@webgpu'), { recursive: true });
  });
  for (const [compiler, types] of Object.entries(COMPILERS)) {
    for (const [module, resolution] of [['nodenext', 'nodenext'], ['esnext', 'bundler']]) {
      test(`${compiler} --strict, ${resolution} resolution`, () => {
        const how = ['--module', module, '--moduleResolution', resolution, ...types];
        try {
          const tsc = join(modules, compiler, 'bin/tsc');
          execFileSync('node', [tsc, ...STRICT, ...TARGET, ...how, ...FILES], { cwd: folder, encoding: 'utf8' });
        } catch (error) {
          throw new Error(error.stdout);
        }
      });
    }
  }
});
