// Contestants take turns, so that whatever else the machine does falls on all of them alike.

import { setTimeout } from 'node:timers/promises';
import { launch } from '../../pkg-tests/support/browser.mjs';
import { contestants, query } from './contestants.mjs';
import { rows } from './rows.js';
import { quartiles } from './statistics.mjs';

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
      const pages = await open(browser, url, threads);
      for (const row of chosen) {
        progress(row.name);
        results.push({ ...row, contestants: await raceRow(pages, row, rounds) });
      }
      await Promise.all(pages.map(({ page }) => page.context().close()));
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
    return { contestant, page };
  }));
}

async function raceRow(pages, row, rounds) {
  const racers = [];
  for (const { contestant, page } of pages) {
    const prepared = await prepare(page, row, contestant);
    racers.push({ contestant, page, ...prepared, times: [] });
  }
  const ready = racers.filter(({ error }) => error !== undefined);
  // Each round begins with another one.
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < ready.length; turn++) {
      const { page, times } = ready[(round + turn) % ready.length];
      if (row.threads > 1) {
        await setTimeout(PAUSE_MS);
      }
      times.push(await page.evaluate(() => globalThis.bench.sample()));
    }
  }
  await Promise.all(ready.map(({ page }) => page.evaluate(() => globalThis.bench.close())));
  return racers.map((racer) => summary(racer, row));
}

// A peer that fails is part of the result; we may not fail.
async function prepare(page, row, { ours }) {
  try {
    return await page.evaluate((name) => globalThis.bench.prepare(name), row.name);
  } catch (failure) {
    if (ours) {
      throw failure;
    }
    return { failure: failure.message.split('\n')[0] };
  }
}

function summary({ contestant: { name, ours = false }, error, failure, times }, { tolerance, flop }) {
  if (error === undefined) {
    return { name, ours, failure };
  }
  const { lower, median, upper } = quartiles(times);
  const gflops = flop && flop / median / 1e6;
  return { name, ours, error, right: error <= tolerance, lower, median, upper, gflops };
}
