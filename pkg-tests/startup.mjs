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
  const all = [];
  for (let run = 0; run < runs; run++) {
    all.push(await stepsOf(backend));
  }
  report[backend] = summary(all, target);
}
server.close();
console.log(JSON.stringify({ runs, milliseconds: report }));
process.exitCode = Object.values(report).every(({ met }) => met) ? 0 : 1;

async function stepsOf(backend) {
  const browser = await launch();
  try {
    const { result } = await outcome(browser, `${server.url}/startup.html?backend=${backend}`);
    return { ...result, total: Object.values(result).reduce((sum, step) => sum + step, 0) };
  } finally {
    await browser.close();
  }
}

function summary(all, target) {
  const medians = Object.keys(all[0]).map((step) => [step, median(all.map((steps) => steps[step]))]);
  const steps = Object.fromEntries(medians);
  return { ...steps, target, met: steps.total <= target };
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return Number(sorted[Math.floor(sorted.length / 2)].toFixed(1));
}
