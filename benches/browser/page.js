// One contestant, row by row, as `race.mjs` tells it to.

import { checked, errorOf, expected } from './oracle.js';
import { gpuRows, inputsOf, rows, threadRows } from './rows.js';

// For the engine to compile what is hot.
const WARM_UP_MS = 250;
// Long beside the clock's step of 5 µs and the wake-up of a page that waited for its turn.
const SAMPLE_MS = 5;
// Beyond this a run is its own warm-up.
const LONG_MS = 50;
// How long the steps of a resident row take at least, and no less than reading their result does,
// which varies.
const STEPS_MS = 25;

const { module, build, backend, halves, threads, among } = Object.fromEntries(new URLSearchParams(location.search));
const contestant = import(`./contestants/${module}.js`)
  .then(({ open }) => open({ build, backend, halves, threads: Number(threads) }));
const known = among === 'threads' ? threadRows : backend || module.endsWith('_gpu') ? gpuRows : rows;
let current;

if (!crossOriginIsolated) {
  throw new Error('without isolation the clock is coarse and there are no threads');
}

globalThis.bench = { prepare, sample, close };

// How far the result is from right; nothing where the contestant lacks the row.
async function prepare(name) {
  const row = known.find((row) => row.name === name);
  const start = (await contestant)[row.resident ? 'resident' : 'endToEnd'];
  if (!start) {
    return undefined;
  }
  const inputs = inputsOf(row);
  const into = row.into && new Float32Array(inputs[0].length);
  current = await start(row, inputs, into);
  if (!current) {
    return undefined;
  }
  if (into) {
    current = { ...current, run: placing(current.run, into) };
  }
  const error = errorOf(checked(row, await result(row)), expected(row, inputs));
  Object.assign(current, await (row.resident ? calibrated(chained, await goal()) : calibrated(repeated, SAMPLE_MS)));
  return { error };
}

// Whoever cannot write to an array of the page's has its result copied there.
function placing(run, into) {
  return async () => {
    const result = await run();
    if (result !== into) {
      into.set(result);
    }
    return into;
  };
}

// How to time the current runner, and how often it has to run for a sample.
async function calibrated(time, goal) {
  const start = performance.now();
  while (performance.now() < start + WARM_UP_MS) {
    await time(1);
  }
  let repetitions = 1;
  let duration;
  while ((duration = await time(repetitions)) < goal) {
    repetitions *= 2;
  }
  return { time, repetitions, long: duration / repetitions > LONG_MS };
}

async function goal() {
  const reading = await chained(0);
  return reading + Math.max(STEPS_MS, reading);
}

async function result({ resident }) {
  if (resident) {
    await advance(1);
    return current.read();
  }
  const result = await current.run();
  return typeof result === 'number' ? [result] : result;
}

// Milliseconds for one run.
async function sample() {
  const { time, repetitions, long } = current;
  if (!long) {
    await time(1);
  }
  return time === chained ? slope(repetitions) : (await time(repetitions)) / repetitions;
}

async function close() {
  await current.close?.();
  current = undefined;
}

async function repeated(count) {
  const start = performance.now();
  for (let i = 0; i < count; i++) {
    await current.run();
  }
  return performance.now() - start;
}

// Each step takes the result of the one before and the last is read, so that nobody can leave
// out a step.
async function chained(count) {
  const start = performance.now();
  await advance(count);
  await current.read();
  return performance.now() - start;
}

async function advance(count) {
  if (current.steps && count > 0) {
    return current.steps(count);
  }
  for (let i = 0; i < count; i++) {
    await current.step();
  }
}

// The difference of two lengths leaves the read out.
async function slope(count) {
  const short = await chained(count);
  const long = await chained(3 * count);
  return (long - short) / (2 * count);
}
