// How long a visitor waits for the first product, and what they download for it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { launch, outcome } from '../../pkg-tests/support/browser.mjs';
import { query } from './contestants.mjs';
import { median } from './statistics.mjs';

const RUNS = 3;

/** Starts each contestant in fresh browsers; returns the median times and the sizes of what they fetch. */
export async function startup(contestants, url, folder, progress) {
  const starts = contestants.map((contestant) => ({ contestant, times: [] }));
  for (let run = 0; run < RUNS; run++) {
    for (const start of starts) {
      progress(`start-up of ${start.contestant.name}`);
      const { result, requests } = await freshStart(`${url}/startup.html?${query(start.contestant, 1)}`);
      start.times.push(result);
      start.files = requests.map((request) => new URL(request).pathname);
    }
  }
  // What everyone fetches is the page itself.
  const isOfPage = (file) => starts.every(({ files }) => files.includes(file));
  return starts.map(({ contestant: { name }, times, files }) => {
    const sizes = files.filter((file) => !isOfPage(file)).map((file) => gzipped(join(folder, file)));
    return { name, milliseconds: median(times), gzip: sizes.reduce((sum, size) => sum + size, 0) };
  });
}

async function freshStart(url) {
  const browser = await launch();
  try {
    return await outcome(browser, url);
  } finally {
    await browser.close();
  }
}

const gzipped = (file) => gzipSync(readFileSync(file), { level: 9 }).length;
