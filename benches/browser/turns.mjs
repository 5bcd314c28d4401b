// Contestants take turns, so that whatever else the machine does falls on all of them alike.

import { quartiles } from './statistics.mjs';

// Each racer has a contestant and its page's `bench`; `pause` comes before each sample.
export async function raceRow(racers, row, rounds, pause = async () => {}) {
  const prepared = [];
  for (const { contestant, bench } of racers) {
    const racer = { contestant, bench, times: [] };
    Object.assign(racer, await attempt(racer, () => bench.prepare(row.name)));
    prepared.push(racer);
  }
  const ready = prepared.filter(({ error }) => error !== undefined);
  // Each round begins with another one.
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < ready.length; turn++) {
      const racer = ready[(round + turn) % ready.length];
      if (racer.failure === undefined) {
        await pause();
        await attempt(racer, async () => racer.times.push(await racer.bench.sample()));
      }
    }
  }
  await Promise.all(ready.map((racer) => attempt(racer, () => racer.bench.close())));
  return prepared.map((racer) => summary(racer, row));
}

// A peer that fails is part of the result; we may not fail.
async function attempt(racer, work) {
  try {
    return await work();
  } catch (failure) {
    if (racer.contestant.ours) {
      throw failure;
    }
    racer.failure ??= String(failure?.message ?? failure).split('\n')[0];
    return undefined;
  }
}

function summary({ contestant, error, failure, times }, { tolerance, flop }) {
  const { name, ours = false, tolerance: own = 0 } = contestant;
  if (failure !== undefined || error === undefined) {
    return { name, ours, failure };
  }
  const { lower, median, upper } = quartiles(times);
  const gflops = flop && flop / median / 1e6;
  const right = error <= tolerance;
  return { name, ours, error, right, wrong: error > Math.max(tolerance, own), lower, median, upper, gflops };
}
