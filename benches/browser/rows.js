// What is measured. A contestant's `ops` says how it does each `op`.

const M = 1_000_000;

// The largest error that a right result may have, relative to the largest value of the result:
// some roundings for one value alone, more where many are added up.
const ALONE = 1e-6;
const ADDED = 1e-5;

// Of a large product these many rows are compared; the oracle takes seconds for each hundred.
const CHECKED_ROWS = 16;

// Values of a batch, and of the weights and biases of two layers.
const PERCEPTRON = [[256, 784], [784, 512], [512], [512, 10], [10]];

// Two layers without biases; `scales` keep what is between them where the oracle's series converges.
const MLP = [[128, 512], [512, 2048], [2048, 512]];

export const rows = [
  { name: 'relu 1,024', op: 'relu', shapes: [[1024]], tolerance: ALONE },
  ...[256, 512, 1024].map((side) => matmul(side)),
  { name: 'relu 1M', op: 'relu', shapes: [[M]], tolerance: ALONE },
  { name: 'gelu (erf) 1M', op: 'gelu', shapes: [[M]], tolerance: ALONE },
  { name: 'sigmoid 1M', op: 'sigmoid', shapes: [[M]], tolerance: ALONE },
  { name: 'softmax 1M', op: 'softmax', shapes: [[M]], tolerance: ADDED },
  { name: 'relu → scale → add 1M', op: 'chain', shapes: [[M], [M]], tolerance: ALONE },
  { name: 'relu → scale → add 1M, resident', op: 'chain', shapes: [[M], [M]], tolerance: ALONE, resident: true },
  { name: 'sum 1M', op: 'sum', shapes: [[M]], tolerance: ALONE },
  ...[3, 7].map((side) => convolution(side)),
  { name: 'perceptron 128×512→2048→512, gelu', op: 'mlp', shapes: MLP, scales: [1, 1 / 128, 1 / 64], tolerance: ADDED, weights: 1 },
  ...[matmul(1024), convolution(15, 1024)].map(onTwoThreads),
  ...[1024, M].map((length) => given('relu', `relu ${length === M ? '1M' : '1,024'}`, [[length]], ALONE)),
  given('softmax', 'softmax 1M', [[M]], ADDED),
  given('chain', 'relu → scale → add 1M', [[M], [M]], ALONE),
];

// What threads divide, and a small operation that they leave alone. Peers have no resident rows.
export const threadRows = [
  { name: 'relu 1,024', op: 'relu', shapes: [[1024]], tolerance: ALONE },
  matmul(1024),
  { name: 'perceptron 128×512→2048→512, gelu', op: 'mlp', shapes: MLP, scales: [1, 1 / 128, 1 / 64], tolerance: ADDED, weights: 1 },
  { name: 'convolution layer 64→64, 56², 3×3', op: 'layer', shapes: [[1, 64, 58, 58], [64, 64, 3, 3]], tolerance: ADDED, weights: 1 },
  ...['gelu', 'softmax'].map((op) => ({ name: `${op} 1M`, op, shapes: [[M]], tolerance: ADDED })),
  ...['gelu', 'softmaxRows'].map((op) => ({ name: `${op} 1000², resident`, op, shapes: [[1000, 1000]], tolerance: ADDED, resident: true, alike: true })),
];

// On a GPU: small work is all overhead, large work stays on the device.
export const gpuRows = [
  { name: 'relu 1,024', op: 'relu', shapes: [[1024]], tolerance: ALONE },
  { name: 'relu 1,024, resident', op: 'relu', shapes: [[1024]], tolerance: ALONE, resident: true },
  { ...matmul(1024), checkedRows: CHECKED_ROWS },
  ...[2048, 4096].map((side) => residentMatmul(side)),
  { name: 'softmax 1M', op: 'softmax', shapes: [[M]], tolerance: ADDED },
  { name: 'relu → scale → add 1M', op: 'chain', shapes: [[M], [M]], tolerance: ALONE },
  { name: 'relu → scale → add 1M, resident', op: 'chain', shapes: [[M], [M]], tolerance: ALONE, resident: true },
  { name: 'sum 1M', op: 'sum', shapes: [[M]], tolerance: ALONE },
  convolution(7),
  { name: 'perceptron 256×784→512→10', op: 'perceptron', shapes: PERCEPTRON, tolerance: ADDED, weights: 1 },
];

function matmul(side) {
  const shapes = [[side, side], [side, side]];
  return { name: `matmul ${side}`, op: 'matmul', shapes, tolerance: ADDED, flop: 2 * side ** 3 };
}

// The second matrix neither lets values grow from step to step nor shrink.
function residentMatmul(side) {
  const scales = [1, Math.sqrt(3 / (16 * side))];
  return { ...matmul(side), name: `matmul ${side}, resident`, resident: true, scales, checkedRows: CHECKED_ROWS };
}

function convolution(side, image = 512) {
  const shapes = [[image, image], [side, side]];
  return { name: `convolution ${image}², ${side}×${side}`, op: 'conv', shapes, tolerance: ADDED };
}

// The result has to lie in an array that the page has already, as long as the first input.
function given(op, name, shapes, tolerance) {
  return { name: `${name}, to a given array`, op, shapes, tolerance, into: true };
}

function onTwoThreads(row) {
  return { ...row, name: `${row.name}, 2 threads`, threads: 2 };
}

export const SCALE = 0.5;

// The same values in every page, spread over [-4, 4).
export function inputsOf({ shapes, scales = [] }) {
  return shapes.map((shape, seed) => {
    const values = new Float32Array(shape.reduce((product, side) => product * side, 1));
    const scale = scales[seed] ?? 1;
    for (let i = 0; i < values.length; i++) {
      values[i] = (hash(i + seed * M) / 2 ** 29 - 4) * scale;
    }
    return values;
  });
}

// "lowbias32" of Chris Wellons's hash-prospector.
function hash(x) {
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return (x ^ (x >>> 16)) >>> 0;
}
