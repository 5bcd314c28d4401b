// The kernels. Weights are read row by row; a kernel is not flipped before it is applied.

/**
 * @typedef {object} Filter
 * @property {string} label What the visitor reads.
 * @property {number} size Rows, and columns, of the kernel.
 * @property {Float32Array} kernel Its weights.
 */

/** @type {Record<string, Filter>} */
export const filters = {
  identity: square('Original', [
    0, 0, 0,
    0, 1, 0,
    0, 0, 0,
  ]),
  blur: square('Blur', gaussian(9, 2)),
  motion: square('Motion', diagonal(9)),
  sharpen: square('Sharpen', [
    0, -1, 0,
    -1, 5, -1,
    0, -1, 0,
  ]),
  edges: square('Edges', [
    -1, -1, -1,
    -1, 8, -1,
    -1, -1, -1,
  ]),
  sobel: square('Sobel', [
    -1, 0, 1,
    -2, 0, 2,
    -1, 0, 1,
  ]),
  emboss: square('Emboss', [
    -2, -1, 0,
    -1, 1, 1,
    0, 1, 2,
  ]),
  // What the editor holds; this is only where it begins.
  custom: square('Your own', [
    -1, 0, -1, 0, -1,
    0, 0, 0, 0, 0,
    -1, 0, 9, 0, -1,
    0, 0, 0, 0, 0,
    -1, 0, -1, 0, -1,
  ]),
};

/** Weights that can be typed in; larger kernels are shown as a picture. */
export const editable = ({ size }) => size <= 5;

function square(label, weights) {
  return { label, size: Math.sqrt(weights.length), kernel: Float32Array.from(weights) };
}

/** A bell of the given standard deviation whose weights sum to 1. */
function gaussian(size, deviation) {
  const middle = (size - 1) / 2;
  const bell = Array.from({ length: size }, (_, i) => Math.exp(-((i - middle) ** 2) / (2 * deviation ** 2)));
  const total = bell.reduce((sum, weight) => sum + weight);
  return bell.flatMap((down) => bell.map((right) => (down * right) / total ** 2));
}

/** The mean along a line from the lower left to the upper right. */
function diagonal(size) {
  return Array.from({ length: size * size }, (_, i) => (Math.floor(i / size) + (i % size) === size - 1 ? 1 / size : 0));
}
