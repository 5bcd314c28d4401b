// The race on WebGPU, run by the page itself: where the GPU is there may be nothing but a browser.
// Each contestant is a frame of this page. `?rounds=N&only=REGEX&to=URL`; the results are `outcome`,
// and go to the URL of a server that takes them (`drive.py`), if there is one.

import { gpuContestants, query } from './contestants.mjs';
import { deliver } from './deliver.js';
import { report } from './report.mjs';
import { gpuRows } from './rows.js';
import { raceRow } from './turns.mjs';

// A peer that has not begun by then counts as failed.
const PATIENCE_MS = 60_000;

const { rounds = '9', only = '' } = Object.fromEntries(new URLSearchParams(location.search));

globalThis.outcome = run().then(deliver, (error) => deliver({ failure: String(error.stack ?? error) }));

async function run() {
  const racers = await Promise.all(gpuContestants.map(open));
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

function open(contestant) {
  const frame = document.createElement('iframe');
  frame.src = `page.html?${query(contestant, 1)}`;
  return new Promise((resolve) => {
    frame.onload = () => resolve({ contestant, bench: benchOf(frame.contentWindow, contestant) });
    document.body.append(frame);
  });
}

function benchOf(page, { name }) {
  const late = () => new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`${name} took more than ${PATIENCE_MS} ms to begin`)), PATIENCE_MS);
  });
  return {
    prepare: (row) => Promise.race([page.bench.prepare(row), late()]),
    sample: () => page.bench.sample(),
    close: () => page.bench.close(),
  };
}

async function adapter() {
  const found = await navigator.gpu?.requestAdapter();
  const { vendor, architecture, description } = found?.info ?? {};
  return [vendor, architecture, description].filter(Boolean).join(' ');
}
