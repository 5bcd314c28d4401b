// Contestants take turns, so that whatever else the machine does falls on all of them alike.

import { quartiles } from './statistics.mjs';

// Each racer has a contestant and its page's `bench`; `pause` comes before each sample.
export async function raceRow(racers, row, rounds, pause = async () => {}) {
  const prepared = [];
  for (const { contestant, bench } of racers) {
    prepared.push({ contestant, bench, times: [], ...(await prepare(bench, row, contestant)) });
  }
  const ready = prepared.filter(({ error }) => error !== undefined);
  // Each round begins with another one.
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < ready.length; turn++) {
      const { bench, times } = ready[(round + turn) % ready.length];
      await pause();
      times.push(await bench.sample());
    }
  }
  await Promise.all(ready.map(({ bench }) => bench.close()));
  return prepared.map((racer) => summary(racer, row));
}

// A peer that fails is part of the result; we may not fail.
async function prepare(bench, row, { ours }) {
  try {
    return await bench.prepare(row.name);
  } catch (failure) {
    if (ours) {
      throw failure;
    }
    return { failure: String(failure?.message ?? failure).split('\n')[0] };
  }
}

function summary({ contestant, error, failure, times }, { tolerance, flop }) {
  const { name, ours = false, tolerance: own = 0 } = contestant;
  if (error === undefined) {
    return { name, ours, failure };
  }
  const { lower, median, upper } = quartiles(times);
  const gflops = flop && flop / median / 1e6;
  const right = error <= tolerance;
  return { name, ours, error, right, wrong: error > Math.max(tolerance, own), lower, median, upper, gflops };
}
