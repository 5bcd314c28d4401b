// Calls of operations: [method, inputs, parameters]. The app makes them on a device and in a batch, in every
// environment; `oracle.mjs` has the right answers. New operations need no entry: `special.test.mjs` tries every
// operation of the table with cases of the crate.

// The right answers are computed from what the Float32Arrays hold, so no rounding is lost here.
const wave = (length, scale = 1, shift = 0) =>
  Float32Array.from({ length }, (_, i) => scale * Math.sin(1.7 * i + 0.3) + shift);
const other = (length) => Float32Array.from({ length }, (_, i) => 1.5 + Math.cos(0.9 * i));

export const ops = [
  ['relu', [wave(100)], []],
  ['leakyRelu', [wave(100)], [0.125]],
  ['elu', [wave(100)], [1.5]],
  ['sigmoid', [wave(100, 4)], []],
  ['tanh', [wave(100, 3)], []],
  ['swish', [wave(100, 3)], []],
  ['gelu', [wave(100, 3)], []],
  ['geluTanh', [wave(100, 3)], []],
  ['clip', [wave(100)], [-0.5, 0.25]],
  ['exp', [wave(100, 2)], []],
  ['log', [wave(100, 1, 1.5)], []],
  ['sqrt', [wave(100, 1, 1.5)], []],
  ['abs', [wave(100)], []],
  ['neg', [wave(100)], []],
  ['scale', [wave(100)], [-2.5]],
  ['vecAdd', [wave(100), other(100)], []],
  ['sub', [wave(100), other(100)], []],
  ['mul', [wave(100), other(100)], []],
  ['div', [wave(100), other(100)], []],
  ['minimum', [wave(100, 3), other(100)], []],
  ['maximum', [wave(100, 3), other(100)], []],
  ['biasAdd', [wave(35), other(7)], [5, 7]],
  ['softmax', [wave(100, 5)], []],
  ['logSoftmax', [wave(100, 5)], []],
  ['softmaxRows', [wave(35, 5)], [5, 7]],
  ['logSoftmaxRows', [wave(35, 5)], [5, 7]],
  ['matmul', [wave(17 * 33), other(33 * 9)], [17, 33, 9]],
  ['transpose', [wave(35)], [5, 7]],
  ['convolve2d', [wave(12 * 11), other(9)], [convolution({ padding: 'same' })]],
  ['convolve2d', [wave(12 * 11), other(9)], [convolution({ padding: 'valid', strideRows: 2, strideCols: 3 })]],
  ['dot', [wave(100), other(100)], []],
  ['sum', [other(100)], []],
  ['max', [wave(100)], []],
  ['min', [wave(100)], []],
  ['mean', [other(100)], []],
  ['argmax', [wave(100)], []],
];

// The same of more values than are worked on at a time.
export const long = [
  ['gelu', [wave(70_001)], []],
  ['vecAdd', [wave(70_001), other(70_001)], []],
  ['softmax', [wave(70_001, 5)], []],
  ['logSoftmax', [wave(70_001, 5)], []],
  ['convolve2d', [wave(403 * 301), other(9)], [convolution({ inputRows: 403, inputCols: 301 })]],
  ['convolve2d', [wave(403 * 301), other(1)], [{ inputRows: 403, inputCols: 301, kernelRows: 1, kernelCols: 1 }]],
];

function convolution(options) {
  return { inputRows: 12, inputCols: 11, kernelRows: 3, kernelCols: 3, ...options };
}
