// The race on SIMD, with a page for each contestant.

import { setTimeout } from 'node:timers/promises';
import { launch } from '../../pkg-tests/support/browser.mjs';
import { contestants, query } from './contestants.mjs';
import { rows } from './rows.js';
import { raceRow } from './turns.mjs';

// Threads that are done spin for a while; the next in turn should not have to share with them.
const PAUSE_MS = 50;

export async function race(url, options) {
  const browser = await launch();
  try {
    return { chromium: browser.version(), rows: await raceRows(browser, url, options) };
  } finally {
    await browser.close();
  }
}

async function raceRows(browser, url, { rounds, only, progress }) {
  const results = [];
  for (const threads of [1, 2]) {
    const chosen = rows.filter((row) => (row.threads ?? 1) === threads && only.test(row.name));
    if (chosen.length > 0) {
      const racers = await open(browser, url, threads);
      const pause = threads > 1 ? () => setTimeout(PAUSE_MS) : undefined;
      for (const row of chosen) {
        progress(row.name);
        results.push({ ...row, contestants: await raceRow(racers, row, rounds, pause) });
      }
      await Promise.all(racers.map(({ page }) => page.context().close()));
    }
  }
  return results;
}

// A page for each contestant has a heap for each, so that everyone collects their own garbage.
function open(browser, url, threads) {
  const present = contestants.filter(({ hasThreads }) => threads === 1 || hasThreads);
  return Promise.all(present.map(async (contestant) => {
    // The server's strict policy has no place for the workers that some make from blobs.
    const context = await browser.newContext({ bypassCSP: true });
    const page = await context.newPage();
    await page.goto(`${url}/page.html?${query(contestant, threads)}`);
    return { contestant, page, bench: benchOf(page) };
  }));
}

const benchOf = (page) => ({
  prepare: (name) => page.evaluate((name) => globalThis.bench.prepare(name), name),
  sample: () => page.evaluate(() => globalThis.bench.sample()),
  close: () => page.evaluate(() => globalThis.bench.close()),
});
