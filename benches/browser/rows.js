// What is measured. A contestant's `ops` says how it does each `op`.

const M = 1_000_000;

// The largest error that a right result may have, relative to the largest value of the result:
// some roundings for one value alone, more where many are added up.
const ALONE = 1e-6;
const ADDED = 1e-5;

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
  ...[matmul(1024), convolution(15, 1024)].map(onTwoThreads),
];

function matmul(side) {
  const shapes = [[side, side], [side, side]];
  return { name: `matmul ${side}`, op: 'matmul', shapes, tolerance: ADDED, flop: 2 * side ** 3 };
}

function convolution(side, image = 512) {
  const shapes = [[image, image], [side, side]];
  return { name: `convolution ${image}², ${side}×${side}`, op: 'conv', shapes, tolerance: ADDED };
}

function onTwoThreads(row) {
  return { ...row, name: `${row.name}, 2 threads`, threads: 2 };
}

export const SCALE = 0.5;

// The same values in every page, spread over [-4, 4).
export function inputsOf({ shapes }) {
  return shapes.map((shape, seed) => {
    const length = shape.reduce((product, side) => product * side, 1);
    return Float32Array.from({ length }, (_, i) => hash(i + seed * M) / 2 ** 29 - 4);
  });
}

// "lowbias32" of Chris Wellons's hash-prospector.
function hash(x) {
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return (x ^ (x >>> 16)) >>> 0;
}
