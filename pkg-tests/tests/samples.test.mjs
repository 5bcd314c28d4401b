// Every JavaScript sample of the README, the guides and the playground is type-checked and run in Node.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { before, describe, test } from 'node:test';
import { fresh } from '../support/install.mjs';
import { exampleSamples, standaloneSamples } from '../support/samples.mjs';

const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));
const CHECK = '--allowJs --checkJs --strict --noEmit --target esnext --lib esnext,dom --module nodenext'.split(' ');

describe('samples', () => {
  const samples = [...standaloneSamples(), ...exampleSamples()];
  let folder;
  before(() => {
    folder = fresh('samples', { files: [] });
    samples.forEach(({ name, code }) => writeFileSync(join(folder, name), code));
  });

  test('there are some in each kind of page', () => {
    const names = samples.map(({ name }) => name);
    ['README-1.js', 'javascript-1.js', 'ptx-1.js', 'example-tensors.js'].forEach((name) => assert.ok(names.includes(name), name));
  });

  test('types', () => {
    try {
      execFileSync('node', [tsc, ...CHECK, ...samples.map(({ name }) => name)], { cwd: folder, encoding: 'utf8' });
    } catch (error) {
      throw new Error(error.stdout);
    }
  });

  for (const { name, prints } of samples) {
    test(name, () => {
      const output = execFileSync('node', [name], { cwd: folder, encoding: 'utf8' }).split('\n');
      prints.forEach((line) => assert.ok(output.includes(line), `${line} is not in ${output.join('\n')}`));
    });
  }
});
