// Functions of `relampago/numeric`: beside NumPy, their types, in compiled functions, in scopes, their gradients, and mistakes.

import { numpyCases } from './numeric-cases.js';

const list = async (tensor) => [...await tensor.data()];

/** The types of results, and results that have no case beside NumPy. */
async function results(device, Tensor) {
  const x = device.tensor([1, 2, 3]);
  const indices = device.tensor(Uint32Array.of(2, 0, 1));
  const isLarge = x.greater(1);
  const dropped = x.broadcastTo([1000, 3]).dropout(0.25, { seed: 7 });
  const again = x.broadcastTo([1000, 3]).dropout(0.25, { seed: 7 });
  const values = await list(dropped);
  return {
    types: [
      indices.roll(1, 0), isLarge.flip(), isLarge.tile(2), ...indices.split(3), indices.pad([[1, 0]]), x.argsort(), indices.sort(),
      indices.cumsum(0), x.bincount(4), isLarge.prod(), indices.repeat(1, 0), Tensor.einsum('i->i', [indices]),
    ].map(({ dtype }) => dtype).join(),
    like: [await list(x.zerosLike()), await list(x.onesLike()), await list(x.fullLike(7))],
    range: [await list(device.arange(3)), await list(device.arange(0, 0.3, 0.1)), (await device.arange(3, 0).data()).length],
    eye: await device.eye(2).array(),
    booleans: [await isLarge.flip().array(), await isLarge.roll(0, 0).array()],
    kept: [x.prod(0, { keepDims: true }).shape, x.norm({ keepDims: true }).shape, x.norm().shape],
    numbers: [await list(x.modulo(2)), await list(x.hypot(0)), await list(x.scatterAdd([2, 2], 1)), await list(x.scatterAdd(0, 5))],
    dropped: [values.filter((value) => value === 0).length, String(values) === String(await again.data()), x.dropout(1).size],
    random: String(await x.tile(100).dropout(0.5).data()) !== String(await x.tile(100).dropout(0.5).data()),
    empty: [device.zeros([0, 2]).cumsum(0).shape, await list(device.zeros([0]).prod())],
    // Indices that a device has are not looked at.
    computed: [await list(x.sub(1).bincount(2)), await list(x.scatterAdd(x.add(1), 10))],
  };
}

/** Whether a result of unchanged elements outlives the tensor that it comes from, and how many programs a seed plans. */
async function lifetimes(device) {
  const x = await device.tensor([1, 2]).run();
  const same = x.roll(0, 0);
  same.dispose();
  const still = await list(x);
  const outer = device.tensor(new Float32Array(3000).fill(1));
  const kept = await device.scope(() => {
    const rolled = outer.rfft();
    return { rolled, local: device.arange(4) };
  });
  const { planned } = device.tensors;
  for (let seed = 0; seed < 4; seed++) {
    await outer.dropout(0.5, { seed }).sum().item();
    await outer.modulo(1 + seed).sum().item();
    await outer.fullLike(seed).mul(outer).sum().item();
  }
  const more = device.tensors.planned - planned;
  return { still, scoped: [...await list(kept.local), Math.round((await kept.rolled.data())[0])], planned: more };
}

/** A compiled function of several of them. */
async function compiled(device, Tensor) {
  let recorded = 0;
  const f = device.jit((x, angle) => {
    recorded += 1;
    const padded = x.pad([[1, 1], [0, 0]], { mode: 'reflect' });
    const sums = padded.cumsum(0);
    return { sums, order: sums.argsort(0), outer: Tensor.einsum('ij,kj->ik', [x, x]), wave: x.add(angle).rfft(0) };
  });
  const all = [];
  for (const angle of [0, 1]) {
    const { sums, order, outer, wave } = await f(device.tensor([[1, 2], [3, 5]]), angle);
    all.push([await sums.array(), await order.array(), await outer.array(), await wave.array()]);
  }
  return { recorded, first: all[0], wave: all[1][3] };
}

const DISTANCE = 1 / 64;

/** Losses of parameters; each is a function with a rule of its own for gradients. */
const LOSSES = {
  pad: [[2, 3], (x) => x.pad([[1, 0], [2, 1]], { mode: 'edge' }).square().sum()],
  movement: [[2, 3], (x) => x.roll(1, 1).mul(x.flip(0)).tile([2, 1]).repeat(2, 0).square().sum()],
  prod: [[2, 3], (x) => x.prod(1).sum().add(x.norm(0, { p: 3 }).sum())],
  scans: [[4], (x) => x.cumsum(0).square().sum().add(x.cumprod(0).sum())],
  sort: [[5], (x, device) => x.sort().mul(device.arange(5)).sum()],
  angle: [[2, 3], (x) => x.atan2(0.5).add(x.logaddexp(0.25)).add(x.hypot(2)).sum()],
  einsum: [[2, 3], (x, device, Tensor) => Tensor.einsum('ij,kj->ik', [x, x]).square().sum()],
  scatterAdd: [[3], (x) => x.scatterAdd([1, 1, 2], x.square()).square().sum()],
  pools: [[1, 4, 5], (x) => x.maxPool([2, 2]).square().sum().add(x.avgPool([3, 2], { padding: 1, stride: 2 }).square().sum())],
  resize: [[1, 3, 4], (x) => x.resize([2, 6], { mode: 'bicubic', antialias: true }).square().sum()],
  transforms: [[6], (x) => x.rfft().square().sum().add(x.stft(x.onesLike().slice([[0, 4]]), 2).sum())],
  dropout: [[8], (x) => x.dropout(0.5, { seed: 3 }).square().sum()],
};

async function wrongGradients(device, Tensor) {
  const wrong = [];
  for (const [name, [shape, f]] of Object.entries(LOSSES)) {
    const size = shape.reduce((all, length) => all * length, 1);
    const values = Float32Array.from({ length: size }, (_, at) => ((at * 37) % 61) / 31 - 0.97);
    const lossOf = (given) => f(device.tensor(given, shape), device, Tensor);
    const x = device.tensor(values, shape);
    const gradient = await f(x, device, Tensor).gradients(x).data();
    const moved = [...values.keys()].flatMap((at) => [1, -1].map((sign) => lossOf(values.with(at, values[at] + sign * DISTANCE))));
    const losses = (await device.read(moved)).map(([loss]) => loss);
    const slopes = [...values.keys()].map((at) => (losses[2 * at] - losses[2 * at + 1]) / (2 * DISTANCE));
    const largest = Math.max(1, ...slopes.map(Math.abs));
    const worst = Math.max(...slopes.map((one, at) => Math.abs(one - gradient[at])));
    if (!(worst <= 0.01 * largest)) {
      wrong.push(`${name}: ${worst} of ${largest}`);
    }
  }
  return { count: Object.keys(LOSSES).length, wrong };
}

/** The codes and messages of mistakes, and whether the stack of each begins with the line of the call. */
async function mistakes({ GpuDevice, Tensor }, device) {
  const other = await GpuDevice.create({ backend: 'simd' });
  const x = device.tensor([[1, 2, 3], [4, 5, 6]]);
  const calls = [
    () => x.cumsum(2),
    () => x.cumsum(),
    () => x.cumsum(0.5),
    () => x.roll('1', 0),
    () => x.pad([[1, 1]]),
    () => x.pad([1, 1]),
    () => x.pad([[2, 0], [0, 0]], { mode: 'reflect' }),
    () => x.pad([[1, 1], [0, 0]], { mode: 'wrap' }),
    () => x.pad([[1, 1], [0, 0]], { fill: 2 }),
    () => x.split(2, 1),
    () => x.split([4], 1),
    () => x.tile(-1),
    () => x.prod([0, 0]),
    () => x.norm({ keepDims: 1 }),
    () => x.modulo(other.tensor([1])),
    () => x.modulo([1]),
    () => x.hypot(device.ones([2])),
    () => Tensor.einsum('ij,jk', [x]),
    () => Tensor.einsum('ij', x),
    () => Tensor.einsum('ij,ij->i', [x, device.ones([2, 2])]),
    () => device.tensor([0, 5]).bincount(5),
    () => x.scatterAdd([2], 1),
    () => x.scatterAdd([1], device.ones([2])),
    () => x.histogram(2, 1, 0),
    () => x.dropout(2),
    () => x.dropout(0.5, { seed: -1 }),
    () => x.resize([4, 4], { mode: 'nearest', antialias: true }),
    () => x.maxPool(2),
    () => x.maxPool([3, 3]),
    () => x.avgPool([2, 2], { padding: 2 }),
    () => x.fft(),
    () => x.irfft(7),
    () => x.stft(device.ones([2, 2]), 1),
    () => device.arange(0, 1, 0),
    () => device.arange(NaN),
    () => device.linspace(0, 1, 1e9),
    () => device.eye(2, -1),
    () => x.pad.call(5, []),
    () => x.flip({ axis: 1 }),
    () => x.cumsum(0, { reverse: true }),
    () => x.bincount(2, x),
    () => x.norm({ axis: 1 }),
  ];
  return calls.map((call) => {
    try {
      return `nothing thrown, but ${call()}`;
    } catch ({ code, message, stack }) {
      const [, first] = stack.split('\n');
      const isHere = !Error.captureStackTrace || /numeric\.js/.test(first);
      return `${code} ${message}${isHere ? '' : `, at ${first}`}`;
    }
  });
}

export async function runNumeric(relampago, text, options) {
  const device = await relampago.GpuDevice.create(options);
  const { Tensor } = relampago;
  return {
    backend: device.backend,
    numpy: await numpyCases(relampago, device, text),
    results: await results(device, Tensor),
    lifetimes: await lifetimes(device),
    compiled: await compiled(device, Tensor),
    gradients: await wrongGradients(device, Tensor),
    mistakes: await mistakes(relampago, device),
  };
}
