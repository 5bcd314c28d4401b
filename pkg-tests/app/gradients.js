// Gradients of tensors: beside differences of losses, in trees of parameters, in compiled steps, and mistakes.

const DISTANCE = 1 / 64;

/** Losses of each kind of operation; the parameters are as many numbers from −1 to 1 as the shape has elements. */
const LOSSES = {
  elementwise: [[2, 3], (x, k) => x.mul(k.weights([3])).elu(0.5).add(x.leakyRelu(0.25).square()).sum()],
  clip: [[5], (x) => x.clip(-0.4, 0.7).mul(x.exp()).sum()],
  division: [[4], (x) => x.sigmoid().div(x.add(3)).pow(2).mean()],
  where: [[6], (x) => x.greater(0.1).where(x.square(), x.sin()).sum()],
  slice: [[4, 5], (x, k) => x.slice([[3, 0, -2], [1, null, 2]]).mul(k.weights([2, 2])).sum()],
  permute: [[2, 3, 2], (x, k) => x.permute([2, 0, 1]).reshape([4, 3]).mul(k.weights([4, 3])).square().sum()],
  broadcast: [[3, 1], (x, k) => x.broadcastTo([2, 3, 4]).mul(k.weights([2, 3, 4])).sum()],
  concat: [[2, 2], (x, k) => x.concat([x.square(), x.exp()], 1).mul(k.weights([2, 6])).sum()],
  gather: [[4, 2], (x, k) => x.gather([[2, 0], [2, 3]]).mul(k.weights([2, 2, 2])).square().sum()],
  topK: [[2, 4], (x, k) => x.topK(2).values.mul(k.weights([2, 2])).sum()],
  reductions: [[3, 4], (x, k) => x.mean(0).mul(k.weights([4])).sum().add(x.variance(1).sum()).add(x.max(1).sum())],
  softmax: [[2, 4], (x, k) => x.softmax(0).mul(k.weights([2, 4])).sum().add(x.logSoftmax().mul(k.weights([2, 4])).sum())],
  norms: [[2, 3], (x, k) => x.layerNorm(k.weights([3]), k.weights([3]), { epsilon: 0.1 }).mul(k.weights([2, 3])).sum()
    .add(x.rmsNorm(k.weights([2]), { axis: 0, epsilon: 0.1 }).mul(k.weights([2, 3])).sum())],
  matmul: [[2, 2, 3], (x, k) => x.matmul(k.weights([3, 2])).matmul(x).square().sum()],
  stacks: [[2, 3], (x, k) => k.weights([4, 2, 2]).matmul(x).matmul(k.weights([4, 3, 1])).square().mean()],
  conv2d: [[2, 4, 5, 4], (x, k) =>
    x.conv2d(k.weights([2, 2, 3, 2]), { stride: [2, 1], dilation: [1, 2], groups: 2, padding: 'same' }).square().sum()],
  weights: [[2, 2, 2, 3], (w, k) =>
    k.weights([2, 4, 6, 5]).conv2d(w, { stride: 2, groups: 2, padding: { mode: 'reflect', size: 1 } }).square().mean()],
  crossEntropy: [[3, 4], (x) => x.crossEntropy([1, 0, 3])],
  probabilities: [[2, 2], (x, k) => x.crossEntropy(k.weights([2, 2]).square())],
  oneHot: [[3], (x, k) => k.device.tensor(Uint32Array.of(2, 0)).oneHot(3).mul(x).square().sum()],
};

/** Numbers from −1 to 1 that stay away from bounds and from each other. */
const numbers = (count, offset = 0) =>
  Float32Array.from({ length: count }, (_, at) => ((at * 37 + offset * 11) % 61) / 31 - 0.97);

const sizeOf = (shape) => shape.reduce((size, length) => size * length, 1);

const constants = (device) => ({ device, weights: (shape) => device.tensor(numbers(sizeOf(shape), shape.length + 3), shape) });

/** The names of losses whose gradients differ from their differences. */
async function wrongGradients(device) {
  const wrong = [];
  for (const [name, [shape, f]] of Object.entries(LOSSES)) {
    const values = numbers(sizeOf(shape));
    const lossOf = (given) => f(device.tensor(given, shape), constants(device));
    const x = device.tensor(values, shape);
    const gradient = await f(x, constants(device)).gradients(x).data();
    const moved = [...values.keys()].flatMap((at) => [1, -1].map((sign) => lossOf(values.with(at, values[at] + sign * DISTANCE))));
    const losses = (await device.read(moved)).map(([loss]) => loss);
    const differences = [...values.keys()].map((at) => (losses[2 * at] - losses[2 * at + 1]) / (2 * DISTANCE));
    const largest = Math.max(1, ...differences.map(Math.abs));
    const worst = Math.max(...differences.map((one, at) => Math.abs(one - gradient[at])));
    // A NaN is not near, either.
    if (!(worst <= 0.01 * largest)) {
      wrong.push(`${name}: ${worst} of ${largest}`);
    }
  }
  return { count: Object.keys(LOSSES).length, wrong };
}

const values = async (tensor) => [...await tensor.data()];

async function trees(device) {
  const parameters = { layers: [{ w: device.tensor([1, 2]), b: device.tensor(3) }], scale: device.tensor(2) };
  const loss = ({ layers: [{ w, b }], scale }, x) => w.mul(x).sum().add(b).mul(scale);
  const x = device.tensor([5, 7]);
  const { value, gradients } = device.valueAndGradients(loss)(parameters, x);
  const outside = parameters.scale.square();
  return {
    value: await value.item(),
    gradients: [
      await values(gradients.layers[0].w), await values(gradients.layers[0].b), await values(gradients.scale),
    ],
    same: await values(device.gradients(loss)(parameters, x).scale),
    // Tensors from outside are constants, even if they come from the parameters.
    outside: await values(device.gradients((p) => p.mul(outside))(parameters.scale)),
    unused: await values(loss(parameters, x).gradients([device.ones([2, 2])])[0]),
    empty: (await device.ones([2]).sum().gradients([device.zeros([0, 2])])[0].data()).length,
    second: await values(x.mul(x).mul(x).sum().gradients(x).sum().gradients(x)),
    stopped: await values(x.mul(x.stopGradient()).sum().gradients(x)),
  };
}

/** A perceptron that learns in one compiled step. */
async function training(device) {
  const net = ({ first, second }, x, labels) =>
    x.matmul(first.w).add(first.b).tanh().matmul(second.w).add(second.b).crossEntropy(labels);
  const learn = device.valueAndGradients(net);
  const moved = (tree, gradients, rate) => Object.fromEntries(Object.entries(tree).map(([name, own]) =>
    [name, own.sub(gradients[name].mul(rate))]));
  const step = device.jit((state, batch, options) => {
    const { value, gradients } = learn(state, batch.x, batch.labels);
    const next = Object.fromEntries(Object.keys(state).map((name) => [name, moved(state[name], gradients[name], options.rate)]));
    return { next, loss: value };
  });
  let state = {
    first: { w: device.random.normal([2, 8], { seed: 1 }), b: device.zeros([8]) },
    second: { w: device.random.normal([8, 2], { seed: 2 }), b: device.zeros([2]) },
  };
  const batch = { x: device.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]), labels: device.tensor(Uint32Array.of(0, 1, 1, 0)) };
  const losses = [];
  let planned;
  for (let at = 0; at < 120; at++) {
    const { next, loss } = await step(state, batch, { rate: 0.5 });
    state = next;
    losses.push(await loss.item());
    planned ??= device.tensors.planned;
  }
  return { first: losses[0], last: losses.at(-1), plannedLater: device.tensors.planned - planned };
}

/** The parameters after three steps of each optimizer, from a gradient of 2p each; and clipped gradients. */
async function optimizers({ adam, adamw, clipByGlobalNorm, lion, sgd }, device) {
  const rules = {
    sgd: sgd({ learningRate: 0.1 }),
    momentum: sgd({ learningRate: 0.1, momentum: 0.9, nesterov: true, weightDecay: 0.5 }),
    adam: adam({ learningRate: 0.1 }),
    adamw: adamw({ learningRate: 0.1, weightDecay: 0.5 }),
    lion: lion({ learningRate: 0.1, weightDecay: 0 }),
  };
  const after = {};
  for (const [name, optimizer] of Object.entries(rules)) {
    const step = device.jit((parameters, state) => {
      const gradients = device.gradients(({ a, b }) => a.square().sum().add(b[0].square()))(parameters);
      return optimizer.step(parameters, gradients, state);
    });
    let parameters = { a: device.tensor([1, -2]), b: [device.tensor(3)] };
    let state = optimizer.init(parameters);
    for (let at = 0; at < 3; at++) {
      ({ parameters, state } = await step(parameters, state));
    }
    after[name] = [...await values(parameters.a), ...await values(parameters.b[0]), await state.steps.item()];
  }
  const clipped = clipByGlobalNorm([device.tensor([3, 0]), device.tensor(4)], 2.5);
  return { after, clipped: [await values(clipped[0]), await values(clipped[1])] };
}

async function mistakes({ GpuDevice, adam }, device) {
  const other = await GpuDevice.create({ backend: 'simd' });
  const x = device.tensor([1, 2]);
  const ran = await x.sum().run();
  const messageOf = (f) => {
    try {
      return `nothing thrown, but ${f()}`;
    } catch ({ code, message }) {
      return `${code} ${message}`;
    }
  };
  const cycle = [x];
  cycle.push(cycle);
  return [
    () => x.square().gradients(x),
    () => ran.gradients([x]),
    () => x.sum().gradients([1]),
    () => x.sum().gradients(cycle),
    () => x.sum().gradients([other.tensor([1])]),
    () => x.sum().gradients(device.tensor(Uint32Array.of(1))),
    () => x.argmax().gradients(x),
    () => device.gradients(5),
    () => device.gradients(() => 1)(x),
    () => device.gradients((p) => p)(x),
    () => x.crossEntropy([1, 2, 3]),
    () => device.ones([1, 2]).crossEntropy([2]),
    () => adam({ lr: 1 }),
    () => adam({ b1: '0.9' }),
    () => adam().init([]),
    () => adam().step(x, device.ones([3]), adam().init(x)),
    () => adam().step(x, x),
  ].map(messageOf);
}

export async function runGradients(relampago, { backend, worker = false }) {
  await relampago.default();
  const device = await relampago.GpuDevice.create({ backend, worker });
  return {
    backend: device.backend,
    differences: await wrongGradients(device),
    trees: await trees(device),
    training: await training(device),
    optimizers: await optimizers(relampago, device),
    mistakes: await mistakes(relampago, device),
  };
}
