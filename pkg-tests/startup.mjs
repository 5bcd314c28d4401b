// How long a visitor waits for the first result: medians over browsers started afresh.
// `node startup.mjs [RUNS]` prints one line of JSON and fails when a target is missed.

import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { launch, outcome } from './support/browser.mjs';
import { fresh } from './support/install.mjs';
import { serve } from './support/serve.mjs';

const TARGETS = { simd: 100, gpu: 400 };
const runs = Number(process.argv[2] ?? 5);

const folder = fresh('startup');
cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
const server = await serve(folder);
const report = {};
for (const [backend, target] of Object.entries(TARGETS)) {
  const times = [];
  for (let run = 0; run < runs; run++) {
    const browser = await launch();
    const { result } = await outcome(browser, `${server.url}/startup.html?backend=${backend}`);
    await browser.close();
    times.push(result.milliseconds);
  }
  times.sort((a, b) => a - b);
  const median = times[Math.floor(times.length / 2)];
  report[backend] = { median, least: times[0], most: times.at(-1), target, met: median <= target };
}
server.close();
console.log(JSON.stringify({ runs, milliseconds: report }));
process.exitCode = Object.values(report).every(({ met }) => met) ? 0 : 1;
