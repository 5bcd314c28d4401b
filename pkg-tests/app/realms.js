// The package is given what another realm has made: an iframe's, or a context's of node:vm. Returns plain data.

import { codeOf } from './app.js';
import { ops } from './ops.js';

/** `theirs` has the other realm's classes, `others` further entry points of the package. */
export async function realms(relampago, theirs, others, options) {
  const device = await relampago.GpuDevice.create(options);
  const alien = (values) => new theirs.Float32Array(values);
  return {
    arrays: await arrays(device, alien),
    programs: await programs(device, alien),
    views: await views(relampago, device, theirs),
    signals: await signals(relampago, device, theirs),
    errors: await errors(relampago, device, others),
    kernel: await kernel(others.at(-1), theirs),
  };
}

/** The name of a kernel of PTX that the other realm describes. */
async function kernel({ default: init, buildKernel }, theirs) {
  await init();
  return buildKernel(theirs.Object.assign(theirs.Object.create(null), { kernel: 'softmax', cols: 128 })).name;
}

/** The operations that give another result for arrays of the other realm, or in one. */
async function arrays(device, alien) {
  const wrong = [];
  for (const [method, inputs, parameters] of ops) {
    const right = await device[method](...inputs, ...parameters);
    const into = typeof right === 'number' ? undefined : alien(right.length);
    const result = await device[method](...inputs.map(alien), ...parameters, into && { into });
    if (String(result) !== String(right) || (into && result !== into)) {
      wrong.push(method);
    }
  }
  return wrong;
}

async function programs(device, alien) {
  const buffer = await device.upload(alien([1, -2]));
  const batch = device.batch();
  const sum = batch.vecAdd(batch.placeholder(2), batch.upload(alien([3, 4])));
  const program = await batch.compile([batch.relu(sum)]);
  const into = alien(2);
  const [read] = await program.read([alien([5, -6])], { into: [into] });
  const [kept] = await program.run([buffer]);
  const results = [read === into, [...read], [...await kept.read()]];
  [buffer, batch, program, kept].forEach((object) => object.dispose());
  return results;
}

async function views({ TensorView }, device, theirs) {
  const view = new TensorView(theirs.Array.of(1, 2));
  const two = theirs.Float32Array.of(3, 4);
  const cache = device.matmulCache();
  // A column of 32 weights: 1, 2, 3, … with a scale of 1.
  const blocks = theirs.Uint8Array.from([0, 0x3c, ...Array.from({ length: 32 }, (_, i) => i + 1)]);
  await cache.insertBlocks('blocks', blocks, { k: 32, n: 1, format: 'q8_0' });
  const ones = new theirs.Float32Array(32).fill(1);
  const results = [[...view.gather(two)], await device.tiledSum2d(two, 1, 2), [...await cache.matmulCached('blocks', ones, 1)]];
  cache.dispose();
  return results;
}

async function signals(relampago, device, { AbortController, AbortSignal }) {
  const code = (signal, action = () => {}) => codeOf(relampago, () => {
    const done = device.relu(Float32Array.of(1), { signal });
    action();
    return done;
  });
  const live = new AbortController();
  const cause = await device.relu(Float32Array.of(1), { signal: AbortSignal.abort('why') }).catch((error) => error.cause);
  return [await code(AbortSignal.abort()), await code(live.signal), await code(live.signal, () => live.abort()), cause];
}

/** Whether each entry point's class recognises the errors of all. */
async function errors(relampago, device, others) {
  const error = await device.relu([]).catch((error) => error);
  const classes = [relampago, ...others].map(({ RelampagoError }) => RelampagoError);
  return {
    recognised: classes.map((Class) => error instanceof Class),
    brand: error[Symbol.for('relampago.error')],
    others: [new Error('no'), { code: 'EMPTY' }, null, undefined, 5].map((value) => value instanceof relampago.RelampagoError),
  };
}
