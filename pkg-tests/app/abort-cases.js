// Work that is aborted at random moments, between operations whose results are checked.

import { randomNumbers } from './workers-tools.js';

const SIDES = [8, 64, 256];
const AT_ONCE = 16;

// Starts `count` pieces of work on a device made with each of some options and aborts them; returns
// how many rejected with ABORTED, how many results were checked, and what else happened.
export async function aborts(relampago, backend) {
  await relampago.default();
  const kinds = backend === 'gpu' ? [{}, { worker: true }] : [{}, { worker: true }, { threads: 2 }];
  const totals = { started: 0, aborted: 0, checked: 0, wrong: [] };
  for (const options of kinds) {
    const device = await relampago.GpuDevice.create({ backend, ...options });
    await abortOn(device, totals, backend === 'gpu' ? 2600 : 1700);
    device.dispose();
  }
  return totals;
}

async function abortOn(device, totals, count) {
  const random = randomNumbers(32);
  const values = Float32Array.from({ length: SIDES.at(-1) ** 2 }, () => random(1000) / 500 - 1);
  const checks = checksOn(device, values);
  const expected = await Promise.all(checks.map((check) => check()));
  const starts = await startsOn(device, values);
  for (let done = 0; done < count; done += AT_ONCE) {
    const work = Array.from({ length: AT_ONCE }, () => abortSoon(starts[random(starts.length)], random));
    const settled = Promise.allSettled(work);
    const chosen = random(checks.length);
    const result = await checks[chosen]();
    totals.checked++;
    if (!same(result, expected[chosen])) {
      totals.wrong.push(`check ${chosen} after ${totals.started} aborts`);
    }
    for (const { status, reason } of await settled) {
      totals.started++;
      if (reason?.code === 'ABORTED') {
        totals.aborted++;
      } else if (status === 'rejected') {
        totals.wrong.push(String(reason));
      }
    }
  }
}

// Operations whose results have the sizes of what is aborted.
function checksOn(device, values) {
  return SIDES.flatMap((side) => {
    const x = values.subarray(0, side * side);
    const strip = values.subarray(0, side * 8);
    return [
      () => device.relu(x),
      () => device.vecAdd(x, x),
      () => device.sum(x),
      () => device.softmaxRows(x, side, side),
      () => device.matmul(strip, strip, side, 8, side),
    ];
  });
}

// Each starts something with `{ signal }`.
async function startsOn(device, values) {
  const weights = await device.upload(values.subarray(0, SIDES[1] ** 2));
  const recording = device.batch();
  const x = recording.placeholder(SIDES[1] ** 2);
  const program = await recording.compile([recording.tanh(recording.matmul(x, recording.input(weights), ...cube(SIDES[1])))]);
  const batch = () => {
    const batch = device.batch();
    const y = batch.exp(batch.input(weights));
    return { batch, y };
  };
  return [
    ...SIDES.flatMap((side) => {
      const x = values.subarray(0, side * side);
      return [
        (abort) => device.gelu(x, abort),
        (abort) => device.matmul(x, x, ...cube(side), abort),
        (abort) => device.sum(x, abort),
        async (abort) => (await device.upload(x, abort)).dispose(),
      ];
    }),
    (abort) => weights.read(abort),
    (abort) => batch().batch.execute(abort),
    async (abort) => {
      const { batch: recorded, y } = batch();
      await recorded.execute();
      return recorded.read(y, abort);
    },
    (abort) => program.read([values.subarray(0, SIDES[1] ** 2)], abort),
    async (abort) => (await program.run([weights], abort)).forEach((buffer) => buffer.dispose()),
  ];
}

const cube = (side) => [side, side, side];

// The work's promise, aborted at once, after some microtasks, or after some turns of the event loop.
function abortSoon(start, random) {
  const controller = new AbortController();
  const work = start({ signal: controller.signal });
  const [steps, turn] = [random(4), random(2) ? nextTask : () => null];
  (async () => {
    for (let i = 0; i < steps; i++) {
      await turn();
    }
    controller.abort();
  })();
  return work;
}

const nextTask = () => new Promise((resolve) => setTimeout(resolve));

function same(a, b) {
  return typeof a === 'number' ? Object.is(a, b) : a.length === b.length && a.every((value, i) => Object.is(value, b[i]));
}
