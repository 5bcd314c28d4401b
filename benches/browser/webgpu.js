// The race on WebGPU, run by the page itself: where the GPU is there may be nothing but a browser.
// Each contestant is a frame of this page. `?rounds=N&only=REGEX&to=URL`; the results are `outcome`,
// and go to the URL of a server that takes them (`drive.py`), if there is one.

import { gpuContestants } from './contestants.mjs';
import { deliver } from './deliver.js';
import { open } from './frames.js';
import { report } from './report.mjs';
import { gpuRows } from './rows.js';
import { raceRow } from './turns.mjs';

const { rounds = '9', only = '' } = Object.fromEntries(new URLSearchParams(location.search));

globalThis.outcome = run().then(deliver, (error) => deliver({ failure: String(error.stack ?? error) }));

async function run() {
  const racers = await Promise.all(gpuContestants.map((contestant) => open(contestant, 1)));
  const rows = [];
  for (const row of gpuRows.filter(({ name }) => new RegExp(only).test(name))) {
    console.log(row.name);
    rows.push({ ...row, contestants: await raceRow(racers, row, Number(rounds)) });
  }
  const results = {
    date: new Date().toISOString(),
    command: 'cargo xtask bench browser -- --bundle',
    adapter: await adapter(),
    chromium: navigator.userAgent.match(/Chrome\/([\d.]+)/)?.[1],
    versions: VERSIONS, // What the packages' own files say, put here by `site.mjs`.
    rounds,
    rows,
    startup: [],
  };
  return { ...results, markdown: report(results) };
}

async function adapter() {
  const found = await navigator.gpu?.requestAdapter();
  const { vendor, architecture, description } = found?.info ?? {};
  return [vendor, architecture, description].filter(Boolean).join(' ');
}
