// Races of tensors beside jax-js and beside a program of the same operations.

import { quartiles } from './statistics.mjs';

/** Rounds before those that count: engines compile while they run. */
const WARM_UP = 5;
/** Points, columns and centres of k-means. */
const [POINTS, COLUMNS, CENTRES] = [100_000, 16, 10];
const LENGTH = 1 << 20;
/** Inputs of a perceptron, and the widths of its layers. */
const [INPUTS, LAYERS] = [128, [784, 512, 10]];
/** Elements and repetitions of small tensors. */
const [SMALL, CALLS] = [16, 100];

/** Loads jax-js for `wasm`, on one thread, or for `webgpu`. */
export async function openJax(backend) {
  if (backend === 'wasm') {
    // It looks for shared memory when it is loaded.
    delete globalThis.SharedArrayBuffer;
  }
  const jax = await import('@jax-js/jax');
  if (!(await jax.init(backend)).includes(backend)) {
    throw new Error(`jax-js has no ${backend} here`);
  }
  jax.defaultDevice(backend);
  return jax;
}

/** Returns a table of medians and quartiles in ms. */
export async function table(device, jax, rounds) {
  const races = [
    [`k-means, an iteration of ${POINTS} × ${COLUMNS} and ${CENTRES} centres`, await kMeans(device, jax)],
    [`relu → mul(2) → add of ${LENGTH} resident values`, await fused(device)],
    [`a perceptron, ${LAYERS.join(' → ')}, of ${INPUTS} inputs, read`, await perceptron(device)],
    [`${CALLS} results of ${SMALL} elements, read`, await small(device)],
  ];
  const lines = ['| | | median | quartiles |', '|---|---|---:|---|'];
  for (const [name, racers] of races) {
    for (const [racer, all] of Object.entries(await race(racers, rounds))) {
      const { lower, median, upper } = quartiles(all);
      lines.push(`| ${name} | ${racer} | ${median.toFixed(2)} | ${lower.toFixed(2)} to ${upper.toFixed(2)} |`);
    }
  }
  return lines.join('\n');
}

async function race(racers, rounds) {
  const times = Object.fromEntries(Object.keys(racers).map((name) => [name, []]));
  const order = Object.entries(racers);
  for (let round = 0; round < rounds + WARM_UP; round++) {
    // Each is the first one in its turn, since what ran before leaves caches and garbage.
    order.push(order.shift());
    for (const [name, step] of order) {
      const start = performance.now();
      await step();
      round < WARM_UP || times[name].push(performance.now() - start);
    }
  }
  return times;
}

/** Iterations of k-means from the same centres, which each of them reads; the results must agree. */
async function kMeans(device, jax) {
  const values = await device.random.uniform([POINTS, COLUMNS], { seed: 1 })
    .add(device.random.uniform([POINTS, 1], { seed: 2, max: CENTRES })).data();
  const first = values.slice(0, CENTRES * COLUMNS);
  const points = await device.tensor(values, [POINTS, COLUMNS]).run();
  const step = (x, centres) => {
    const labels = x.matmul(centres.transpose()).sub(centres.square().sum(1).mul(0.5)).argmax(1);
    const members = labels.oneHot(CENTRES);
    return members.transpose().matmul(x).div(members.sum(0).maximum(1).unsqueeze(1));
  };
  const compiled = device.jit(step);
  let centres = { tensors: device.tensor(first, [CENTRES, COLUMNS]), jit: device.tensor(first, [CENTRES, COLUMNS]) };
  const { numpy: np, nn } = jax;
  const peer = jax.jit((x, c) => {
    const halfNorms = np.square(c.ref).sum(1).mul(0.5);
    const labels = np.argmax(np.matmul(x.ref, np.transpose(c)).sub(halfNorms), 1);
    const members = nn.oneHot(labels, CENTRES);
    const sizes = np.maximum(members.ref.sum(0), 1).reshape([CENTRES, 1]);
    return np.matmul(np.transpose(members), x).div(sizes);
  });
  const x = np.array(values).reshape([POINTS, COLUMNS]);
  let peerCentres = np.array(first).reshape([CENTRES, COLUMNS]);
  const racers = {
    'tensors': async () => replace('tensors', await step(points, centres.tensors).run()),
    'device.jit': async () => replace('jit', await compiled(points, centres.jit)),
    'jax-js': () => {
      peerCentres = peer(x.ref, peerCentres);
      return peerCentres.ref.data();
    },
  };
  const replace = (name, next) => {
    centres[name].dispose();
    centres[name] = next;
    return next.data();
  };
  const all = await Promise.all(Object.values(racers).map((run) => run()));
  if (all.some((one) => one.some((value, i) => !(Math.abs(value - all[0][i]) < 1e-3)))) {
    throw new Error('the centres differ');
  }
  return racers;
}

/** The same elementwise operations as tensors, as a compiled function, and as a program with `scale`. */
async function fused(device) {
  const [x, y] = await device.run([device.random.normal([LENGTH], { seed: 1 }), device.random.normal([LENGTH], { seed: 2 })]);
  const [a, b] = await Promise.all([x, y].map(async (tensor) => device.upload(await tensor.data())));
  const batch = device.batch();
  const [p, q] = [batch.placeholder(LENGTH), batch.placeholder(LENGTH)];
  const program = await batch.compile([batch.vecAdd(batch.scale(batch.relu(p), 2), q)]);
  const step = device.jit((s, t) => s.relu().mul(2).add(t));
  return {
    'tensors': async () => (await x.relu().mul(2).add(y).run()).dispose(),
    'device.jit': async () => (await step(x, y)).dispose(),
    'program': async () => (await program.run([a, b])).forEach((buffer) => buffer.dispose()),
  };
}

/** A perceptron of resident weights by tensors, by a compiled function, and by a program. */
async function perceptron(device) {
  const [inner, hidden, classes] = LAYERS;
  const shapes = [[inner, hidden], [hidden], [hidden, classes], [classes]];
  const weights = await device.run(shapes.map((shape, seed) => device.random.normal(shape, { seed, deviation: 0.05 })));
  const values = await device.random.normal([INPUTS, inner], { seed: 9 }).data();
  const scores = (x, w1, b1, w2, b2) => x.matmul(w1).add(b1).relu().matmul(w2).add(b2);
  const compiled = device.jit(scores);

  const batch = device.batch();
  const [w1, b1, w2, b2] = await Promise.all(weights.map(async (tensor) => batch.input(await device.upload(await tensor.data()))));
  const x = batch.placeholder(values.length);
  const layer = batch.relu(batch.biasAdd(batch.matmul(x, w1, INPUTS, inner, hidden), b1, INPUTS, hidden));
  const output = batch.biasAdd(batch.matmul(layer, w2, INPUTS, hidden, classes), b2, INPUTS, classes);
  const program = await batch.compile([output]);
  const input = () => device.tensor(values, [INPUTS, inner]);
  const resident = await input().run();
  return {
    'tensors': () => scores(input(), ...weights).data(),
    'tensors, the inputs resident': () => scores(resident, ...weights).data(),
    'device.jit': async () => (await compiled(input(), ...weights)).data(),
    'program': async () => (await program.read([values]))[0],
  };
}

/** Results that one method makes, and three. */
async function small(device) {
  const [x, y] = await device.run([device.random.normal([SMALL], { seed: 1 }), device.random.normal([SMALL], { seed: 2 })]);
  const repeated = (result) => async () => {
    for (let i = 0; i < CALLS; i++) {
      await result().data();
    }
  };
  return {
    'x.relu()': repeated(() => x.relu()),
    'x.relu().mul(2).add(y)': repeated(() => x.relu().mul(2).add(y)),
  };
}
