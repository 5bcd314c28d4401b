// Operations with all options that there are, and with one that does not exist.
import init, * as relampago from 'relampago';
import { optionMistakes } from './option-mistakes.js';

const { GpuDevice, TensorView } = relampago;
await init();
const device = await GpuDevice.create({ backend: 'simd' });
const x = (length) => new Float32Array(length).fill(0.5);
const window = { inputRows: 3, inputCols: 4, kernelRows: 2, kernelCols: 2, strideRows: 1, strideCols: 2, padding: 'same' };
const heads = { tokens: 2, heads: 2, headLen: 4 };

/** The inputs of operations, and an option of each kind. */
const CALLS = {
  convolve2d: [[x(12), x(4)], window],
  convolveLayer: [
    [x(48), x(16)],
    { ...window, batch: 2, channels: 2, filters: 4, groups: 2, dilationRows: 1, dilationCols: 1 },
  ],
  matmulWith: [[x(6), x(12)], { m: 2, k: 3, n: 4, transposeA: true, transposeB: true }],
  rearrange: [[x(6)], { shape: [2], strides: [2], offset: 1 }],
  reduceAxis: [[x(24)], { fold: 'max', outer: 2, len: 3, inner: 4 }],
  rope: [
    [x(16)],
    { ...heads, rotated: 4, interleaved: true, base: 100, first: 3, factors: x(2) },
  ],
  attention: [
    [x(16), x(12), x(12)],
    { ...heads, kvHeads: 1, positions: 3, causal: 1, window: 2, softCap: 30, scale: 0.5 },
  ],
};

const outcome = async (call) => {
  try {
    await call();
    return 'no error';
  } catch (error) {
    return `${error.code}: ${error.message}`;
  }
};

const results = {};
for (const [name, [inputs, options]] of Object.entries(CALLS)) {
  const batch = device.batch();
  const ids = inputs.map((values) => batch.upload(values));
  const wrong = { ...options, wrong: 1 };
  results[name] = {
    names: Object.keys(options),
    all: [await outcome(() => device[name](...inputs, options)), await outcome(() => batch[name](...ids, options))],
    wrong: [await outcome(() => device[name](...inputs, wrong)), await outcome(() => batch[name](...ids, wrong))],
  };
}

const cache = device.matmulCache();
const messages = [
  await outcome(() => device.matmulWith(x(1), x(1), 3)),
  await outcome(() => device.matmulWith(x(6), x(12), { m: 2, k: 3, n: 4, transposedB: true })),
  await outcome(() => cache.insert('w', x(4), { k: 2, n: 2, transpose: true })),
  await outcome(() => cache.insertBlocks('w', new Uint8Array(34), { k: 32, n: 1, transposed: true })),
  await outcome(() => GpuDevice.create({ policy: { matmull: 1 } })),
  await outcome(() => cache.insert('w', x(4), { k: 2, n: 2, format: 'f16', transposed: true })),
  // All thresholds that there are.
  await outcome(() => GpuDevice.create({ policy: device.policy })),
  await outcome(() => GpuDevice.create({ policy: null })),
];

const signals = await optionMistakes(relampago, device);
const batch = device.batch();
const program = await batch.compile([batch.relu(batch.placeholder(1))]);
const refused = [
  await outcome(() => new TensorView([2, 2], { stride: [1, 2] })),
  await outcome(() => new TensorView([2, 2], { layout: 'columnMajor', strides: [2, 1] })),
  await outcome(() => program.run([x(1)], { into: [x(1)] })),
  ...await Promise.all(['DeviceBuffer', 'GpuCommandBatch', 'GpuDevice', 'GpuMatmulCache', 'Program'].map((name) => outcome(() => new relampago[name]()))),
];
console.log(JSON.stringify({ results, messages, signals, refused }));
