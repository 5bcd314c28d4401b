// What tensors do beside their values. Imports nothing of the package, as app.js does not, and returns plain data.

import { randomCases } from './tensors-cases.js';
import { dtypes, images } from './tensors-dtypes.js';
import { jit, jitMistakes, stacks } from './tensors-jit.js';
import { long } from './tensors-long.js';
import { random } from './tensors-random.js';
import { disposals, loop, manyPrograms, signals, uploads } from './tensors-uses.js';

/** Everything that a page or Node checks; `count` is the number of random cases. */
export async function runTensors(relampago, { backend, worker = false, count }) {
  await relampago.default();
  const device = await relampago.GpuDevice.create({ backend, worker });
  return {
    backend: device.backend,
    cases: await randomCases(relampago, device, { count }),
    mistakes: await mistakes(relampago, device),
    planned: await planned(device),
    leaves: await leaves(device),
    scopes: await scopes(relampago, device),
    agrees: await agrees(relampago, device),
    random: await random(device),
    long: await long(device),
    dtypes: await dtypes(relampago, device),
    images: await images(device),
    jit: await jit(device),
    jitMistakes: await jitMistakes(relampago, device),
    stacks: await stacks(relampago, device),
    uses: {
      manyPrograms: await manyPrograms(device),
      uploads: await uploads(device),
      disposals: await disposals(relampago, device),
      signals: await signals(device),
      loop: await loop(device),
    },
  };
}

/** The code and message of what a call throws at once. */
function thrown(call) {
  try {
    return `nothing thrown, but ${call()}`;
  } catch ({ code, message }) {
    return `${code} ${message}`;
  }
}

/** An array of a class whose buffer was given away. */
function detached(Class) {
  const array = Class.of(1, 2);
  structuredClone(array, { transfer: [array.buffer] });
  return array;
}

async function mistakes({ GpuDevice, Tensor }, device) {
  const images = device.zeros([1, 1, 3, 3]);
  const x = device.tensor([[1, 2, 3], [4, 5, 6]]);
  const disposed = device.tensor([1]);
  disposed.dispose();
  const other = await GpuDevice.create({ backend: 'simd' });
  const buffer = await device.upload(Float32Array.of(1));
  const before = device.tensors.planned;
  const all = [
    () => x.add(device.zeros([3, 2])),
    () => x.matmul(x),
    () => x.sum(2),
    () => x.sum([0, -2]),
    () => x.reshape([4, -1]),
    () => x.reshape([7]),
    () => x.permute([0, 0]),
    () => x.slice([[0, 5]]),
    () => x.slice([2]),
    () => x.concat(device.zeros([2, 2])),
    () => x.gather([2]),
    () => x.topK(4),
    () => x.broadcastTo([3]),
    () => x.layerNorm(device.ones([2]), device.ones([3])),
    () => x.conv2d(x),
    () => x.clip(2, 1),
    () => device.zeros([0]).max(),
    () => device.tensor([1, 2, 3], [2, 2]),
    () => device.tensor([[1, 2], [3]]),
    () => device.zeros([1, 1, 1, 1, 1, 1, 1]),
    () => x.add(Promise.resolve(x)),
    () => x.add(buffer),
    () => x.add([1, 2, 3]),
    () => x.add('1'),
    () => x.add(other.tensor(1)),
    () => x.add(disposed),
    () => x * 2,
    () => x.sum(0, { keepdims: true }),
    () => x.sum({ axis: 0 }),
    () => x.reshape(3, 2),
    () => x.sum(0, { keepDims: 1 }),
    () => x.sum(0, true),
    () => x.conv2d(x, { strides: 2 }),
    () => x.add(x.relu),
    () => x.add({ data: new Uint8ClampedArray(4), width: 1, height: 1 }),
    () => {
      const { add } = x;
      return add(1);
    },
    () => {
      const { zeros } = device;
      return zeros([1]);
    },
    () => device.tensor(Uint32Array.of(16777216, 16777217)),
    () => device.random.uniform([2], { min: 1, max: 1 }),
    () => device.random.normal([2], { seed: -1 }),
    () => device.random.normal([2], { deviation: -1 }),
    () => device.fromImage({ data: new Uint8Array(3), width: 1, height: 1 }),
    () => device.fromImage(Promise.resolve()),
    () => device.fromImage({ data: new Uint8Array(4), width: 1, height: 1 }, { layout: 'rgb' }),
    () => device.tensor([1, , 3]),
    () => x.gather(new Array(1)),
    () => device.tensor([Float32Array.of(1, 2), Float32Array.of(3)]),
    () => device.zeros([1e9]),
    () => device.zeros([30000, 1]).add(device.zeros([1, 30000])),
    () => device.tensor(detached(Float32Array)),
    () => device.tensor(detached(Uint32Array)),
    () => device.fromImage({ data: detached(Uint8Array), width: 0, height: 1 }),
    () => x.reshape([-1, 2n]),
    () => x.reshape([-1, Symbol('2')]),
    () => x.slice([[Symbol('0'), 2]]),
    () => x.slice([[0, 2, 1, 9]]),
    () => images.conv2d(images, { dilation: 2 ** 53 - 1, padding: 'same' }),
    () => images.conv2d(images, { dilation: 2 ** 30, padding: 'same' }),
    () => device.zeros([1, 2 ** 24 + 1]).topK(1),
    () => Tensor.stack([device.zeros([1, 1, 1, 1, 1, 1])]),
    () => x.gather(Float32Array.of(0, 1.5)),
    () => x.gather(device.tensor([0, 7])),
    () => x.gather(device.tensor(-1)),
    () => device.zeros([0, 2]).gather(device.tensor([0])),
    () => device.tensor(Uint32Array.of(2, 7)).oneHot(3),
    () => device.tensor([0.5]).oneHot(3),
    () => images.conv2d(images, { padding: { mode: 'reflect', size: 3 } }),
    () => x.topK(9),
    () => x.slice([null, [null, 4]]),
    () => x.broadcastTo([2, 4]),
    () => x.broadcastTo([1, 3]),
    () => device.tensor(Promise.resolve([1])),
  ].map(thrown);
  const rejected = ({ code, message }) => `${code} ${message}`;
  all.push(await x.item().catch(rejected), await x.data({ sginal: undefined }).catch(rejected));
  all.push(await x.reshape([1, 1, 6]).toImageData().catch(rejected));
  all.push(await device.scope(5).catch(rejected));
  all.push(thrown(() => other.tensor(buffer)));
  buffer.dispose();
  all.push(thrown(() => device.tensor(buffer)));
  return { all, planned: device.tensors.planned - before };
}

/** How many programs were planned for ten factors, and for another shape; the last values. */
async function planned(device) {
  const at = (length, factor) => device.tensor(new Float32Array(length).fill(3)).mul(factor).add(1).data();
  const before = device.tensors.planned;
  let last;
  for (let factor = 0; factor < 10; factor++) {
    last = await at(2, factor);
  }
  const same = device.tensors.planned - before;
  await at(3, 1);
  return { same, other: device.tensors.planned - before, last: [...last] };
}

/** Values are copied, move to the device when they are used again, and stay as they were. */
async function leaves(device) {
  const values = new Float32Array(2000).fill(2);
  const noMemory = Object.assign(new Error('no memory'), { code: 'OUT_OF_MEMORY' });
  device.uploadNow = () => {
    delete device.uploadNow;
    throw noMemory;
  };
  const x = device.tensor(values);
  values.fill(5);
  const sums = [await x.square().sum().item()];
  // The second use uploads them. Where memory is used up, that is tried again after the garbage collector's turn.
  let failed = false;
  device.upload = () => {
    delete device.upload;
    failed = true;
    return Promise.reject(noMemory);
  };
  for (let run = 0; run < 2; run++) {
    sums.push(await x.square().sum().item());
  }
  const y = x.mul(2);
  const [same] = await device.run([y]);
  x.dispose();
  return { sums, failed, isSame: same === y, kept: (await y.data())[1999], empty: [...await device.zeros([0, 3]).data()] };
}

async function scopes({ RelampagoError }, device) {
  const outer = device.tensor([1, 2]);
  let inner;
  const { result } = await device.scope(async () => {
    inner = await outer.add(1).run();
    return { result: await inner.mul(2).run() };
  });
  const codeOf = async (tensor) => tensor.data().then(() => 'no error', (error) => error instanceof RelampagoError && error.code);
  return { values: [...await result.data()], inner: await codeOf(inner), outer: await codeOf(outer) };
}

/** Whether a device has the bits of one on this thread, after two steps of k-means. */
async function agrees({ GpuDevice }, device) {
  const here = await GpuDevice.create({ backend: device.backend === 'webgpu' ? 'gpu' : 'simd' });
  const values = Float32Array.from({ length: 600 }, (_, i) => Math.sin(i * i));
  const all = [];
  for (const one of [device, here]) {
    const points = one.tensor(values, [200, 3]);
    const start = points.slice([[0, 4]]);
    const { nearest, centres } = kMeansStep(points, kMeansStep(points, start, 4).centres, 4);
    all.push(await one.read([nearest, centres, points.softmax(0)]));
  }
  return JSON.stringify(all[0].map(String)) === JSON.stringify(all[1].map(String));
}

/** The bytes of array buffers that are added by many iterations; every buffer is given back. */
export async function memory(relampago, iterations) {
  await relampago.default();
  const device = await relampago.GpuDevice.create({ backend: 'simd' });
  const step = async (x) => {
    const next = await x.mul(0.5).add(1).run();
    x.dispose();
    return next;
  };
  let x = device.tensor(new Float32Array(10_000));
  const used = () => process.memoryUsage().arrayBuffers;
  for (let i = 0; i < 100; i++) {
    x = await step(x);
  }
  const before = used();
  for (let i = 0; i < iterations; i++) {
    x = await step(x);
  }
  return { grown: used() - before, last: (await x.data())[0], planned: device.tensors.planned };
}

/** One step of k-means; returns new centres and the nearest one of each point. */
export function kMeansStep(points, centres, k) {
  const halfNorms = centres.square().sum(1).mul(0.5);
  const nearest = points.matmul(centres.transpose()).sub(halfNorms).argmax(1);
  const members = nearest.oneHot(k);
  return { nearest, centres: members.transpose().matmul(points).div(members.sum(0).maximum(1).unsqueeze(1)) };
}
