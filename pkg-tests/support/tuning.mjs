// What is measured on one visit of a page is known on the next.

import assert from 'node:assert/strict';

const OPERATIONS = [['softmaxRows', 24, 3, 8], ['layerNorm', 24, 8, 8, 3, 8, 1e-5], ['matmul', 6, 6, 2, 3, 2]];
const KERNELS = {
  softmaxRows: ['softmax_partial', 'softmax_row'],
  layerNorm: ['norm_partial', 'norm_row'],
  matmul: ['matmul_128', 'matmul_32', 'matmul_64', 'matmul_direct'],
};

/** What a fresh visit of the page returns of what it does there. */
async function visit(context, url, work, argument) {
  const page = await context.newPage();
  try {
    await page.goto(url);
    await page.evaluate(() => globalThis.outcome);
    return await page.evaluate(work, argument);
  } finally {
    await page.close();
  }
}

// These run on the page.

async function tune([options, operations]) {
  const device = await globalThis.relampago.GpuDevice.create(options);
  const tunings = await device.tune(operations);
  const softmax = await device.softmaxRows(Float32Array.of(1, 1, 2, 2), 2, 2);
  device.dispose();
  return { tunings, softmax: [...softmax] };
}

/** The choices of a new device, a line each. */
async function known(backend) {
  const device = await globalThis.relampago.GpuDevice.create({ backend });
  return new TextDecoder().decode(device.choices().subarray(16)).split('\n').slice(0, -1);
}

/** Changes what is kept. */
async function damage(value) {
  const settled = (request) => new Promise((resolve) => {
    request.onsuccess = () => resolve(request.result);
  });
  const database = await settled(indexedDB.open('relampago'));
  const store = database.transaction('choices', 'readwrite').objectStore('choices');
  const [name] = await settled(store.getAllKeys());
  const kept = await settled(store.get(name));
  kept[kept.length - 2] ^= 1;
  await settled(store.put(value ?? kept, name));
  database.close();
  return name;
}

async function codes() {
  const { GpuDevice, RelampagoError } = globalThis.relampago;
  const device = await GpuDevice.create({ backend: 'gpu' });
  const code = async (...args) => {
    try {
      await device.tune(...args);
    } catch (error) {
      return error instanceof RelampagoError ? error.code : String(error);
    }
    return 'no error';
  };
  const results = [
    await code(), await code([7]), await code([{ 0: 'relu' }]), await code([['nothing', 1]]), await code([['softmaxRows', 5, 2, 2]]),
    await code([['softmaxRows', 4, 2, -2]]), await code([['relu', 4]], { signal: AbortSignal.abort() }),
  ];
  device.dispose();
  return [...results, await code([['relu', 4]])];
}

async function verify(options) {
  const device = await globalThis.relampago.GpuDevice.create(options);
  const code = (given) => device.verify(given).then(() => 'no error', ({ code }) => code);
  const { cases, turnedOff } = await device.verify();
  const codes = [
    await code({ onFault: 'fail' }), await code({ onFault: 'off' }), await code({ onFalt: 'fail' }),
    await code({ signal: AbortSignal.abort() }),
  ];
  const { info } = device;
  device.dispose();
  return { cases, turnedOff, codes: [...codes, await code()], info };
}

/** Whether a database of that name which is somebody else's can be deleted while there is a device. */
async function anothers() {
  const settled = (request) => new Promise((resolve) => {
    request.onsuccess = () => resolve('deleted');
    request.onblocked = () => resolve('in use');
  });
  await settled(indexedDB.deleteDatabase('relampago'));
  const opening = indexedDB.open('relampago');
  await settled(opening);
  opening.result.close();
  const device = await globalThis.relampago.GpuDevice.create({ backend: 'gpu' });
  const deleted = await settled(indexedDB.deleteDatabase('relampago'));
  device.dispose();
  return deleted;
}

const databases = () => indexedDB.databases().then((all) => all.map(({ name }) => name));

/** The lines that measurements come to. */
const lines = (tunings) => {
  const sizes = { softmaxRows: [3, 8, 0], layerNorm: [3, 8, 0], matmul: [2, 3, 2] };
  const names = { softmaxRows: 'softmax', layerNorm: 'norm', matmul: 'matmul' };
  return tunings.map(({ operation: [name], times: [{ kernel }] }) => [names[name], ...sizes[name], '0 0 0', kernel].join(' '));
};

export async function verifyTuning(context, url) {
  const gpu = { backend: 'gpu' };
  assert.deepEqual(await visit(context, url, known, 'gpu'), []);
  assert.deepEqual(await visit(context, url, databases), [], 'who measures nothing keeps nothing');
  const { tunings, softmax } = await visit(context, url, tune, [gpu, [...OPERATIONS, ['relu', 4]]]);
  assert.deepEqual(softmax, [0.5, 0.5, 0.5, 0.5]);
  assert.deepEqual(tunings.map(({ operation }) => operation), OPERATIONS);
  for (const { operation: [name], times } of tunings) {
    assert.deepEqual(times.map(({ kernel }) => kernel).sort(), KERNELS[name]);
    const seconds = times.map(({ seconds }) => seconds);
    assert.deepEqual(seconds, seconds.toSorted((a, b) => a - b));
  }
  const kept = lines(tunings);
  assert.deepEqual(await visit(context, url, known, 'gpu'), kept);
  assert.deepEqual(await visit(context, url, known, 'simd'), []);
  // A device in a worker knows of them and keeps more beside them.
  const more = await visit(context, url, tune, [{ ...gpu, worker: true }, [['softmaxRows', 24, 1, 24]]]);
  const all = [...kept, `softmax 1 24 0 0 0 0 ${more.tunings[0].times[0].kernel}`];
  assert.deepEqual(await visit(context, url, known, 'gpu'), all);
  assert.match(await visit(context, url, damage), /swiftshader/i);
  assert.deepEqual(await visit(context, url, known, 'gpu'), []);
  await visit(context, url, damage, 'no bytes');
  assert.deepEqual(await visit(context, url, known, 'gpu'), []);
  assert.deepEqual(await visit(context, url, tune, [{ backend: 'simd' }, OPERATIONS]).then((on) => on.tunings), []);
  assert.deepEqual(await visit(context, url, codes), [
    ...Array(4).fill('INVALID_ARGUMENT'), 'LENGTH_MISMATCH', 'INVALID_ARGUMENT', 'ABORTED',
    'DISPOSED',
  ]);
  assert.equal(await visit(context, url, anothers), 'deleted');
}

export async function verifyChecks(context, url) {
  const codes = ['no error', 'INVALID_ARGUMENT', 'INVALID_ARGUMENT', 'ABORTED', 'DISPOSED'];
  for (const worker of [false, true]) {
    const checked = await visit(context, url, verify, { backend: 'gpu', worker });
    assert.ok(checked.cases.length > 20);
    for (const { operation, kernels, error, bound, passed } of checked.cases) {
      assert.ok(passed && error <= bound && kernels.every((name) => name), `${operation}: ${error}`);
    }
    assert.deepEqual([checked.turnedOff, checked.info.turnedOff], [[], []]);
    assert.deepEqual(checked.codes, codes);
  }
  const onSimd = await visit(context, url, verify, { backend: 'simd' });
  assert.deepEqual([onSimd.cases, onSimd.turnedOff, onSimd.codes], [[], [], codes]);
}
