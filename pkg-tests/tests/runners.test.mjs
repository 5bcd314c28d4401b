// Jest, whose tests run in a realm of their own, and Vitest.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeSamples } from '../support/guide.mjs';
import { freshHost, hostProgram, hostVersion } from '../support/install.mjs';
import { ran } from '../support/ran.mjs';
import { verify } from '../support/verify.mjs';

/** Tests of the runner's; one leaves the application's results in a file. In Jest, `structuredClone` is of another realm. */
const WHOLE = `
import { writeFileSync } from 'node:fs';
import * as relampago from 'relampago';
import { run } from './app.js';

test('the whole application', async () => {
  writeFileSync('results.json', JSON.stringify(await run(relampago, 'simd')));
}, 60000);

test('what structuredClone makes', async () => {
  const device = await relampago.GpuDevice.create();
  expect([...await device.relu(structuredClone(Float32Array.of(-1, 2)))]).toEqual([0, 2]);
});
`;

const RUNNERS = [
  {
    name: 'Jest',
    whole: WHOLE,
    run: (cwd) => execFileSync(hostProgram('jest'), { cwd, env: { ...process.env, NODE_OPTIONS: '--experimental-vm-modules' }, stdio: 'pipe' }),
  },
  {
    name: 'Vitest',
    whole: `import { expect, test } from 'vitest';${WHOLE}`,
    run: (cwd) => execFileSync(hostProgram('vitest'), ['run'], { cwd, stdio: 'pipe' }),
  },
];

for (const { name, whole, run } of RUNNERS) {
  test(`${name}: the guide and the whole application`, () => {
    const folder = freshHost(name.toLowerCase());
    writeSamples(name, folder);
    writeFileSync(join(folder, 'whole.test.js'), whole);
    try {
      run(folder);
    } catch (error) {
      throw new Error(`${name} failed:\n${error.stdout}\n${error.stderr}`);
    }
    const results = JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8'));
    verify(results, 'simd');
    ran(name, 'application', { version: hostVersion(name.toLowerCase()), ...results });
  });
}
