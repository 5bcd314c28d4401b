// The right answers for tensors, in doubles, by loops over indices: { shape, data }. No code in common with the package.

export const sizeOf = (shape) => shape.reduce((size, length) => size * length, 1);

/** Every index of a shape, in row-major order. */
function* indices(shape) {
  const index = shape.map(() => 0);
  for (let left = sizeOf(shape); left > 0; left--) {
    yield index;
    for (let axis = shape.length - 1; axis >= 0 && ++index[axis] === shape[axis]; axis--) {
      index[axis] = 0;
    }
  }
}

/** An array of what `f` returns for each index. */
export function make(shape, f) {
  const data = [];
  for (const index of indices(shape)) {
    data.push(f(index));
  }
  return { shape, data };
}

const at = ({ shape, data }, index) => data[shape.reduce((place, length, axis) => place * length + index[axis], 0)];

/** The element that an index of a larger shape means. */
const spread = (x, index) => {
  const own = index.slice(index.length - x.shape.length);
  return at(x, own.map((one, axis) => (x.shape[axis] === 1 ? 0 : one)));
};

export function broadcast(...shapes) {
  const rank = Math.max(...shapes.map(({ length }) => length));
  const lengthAt = (axis) => {
    const lengths = shapes.map((shape) => shape[shape.length - rank + axis] ?? 1);
    return lengths.find((length) => length !== 1) ?? 1;
  };
  return Array.from({ length: rank }, (_, axis) => lengthAt(axis));
}

export const map = (f, ...inputs) =>
  make(broadcast(...inputs.map(({ shape }) => shape)), (index) => f(...inputs.map((x) => spread(x, index))));

// Elementwise operations.

const gate = (f) => (x) => (x === -Infinity ? 0 : f(x));
const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const softplus = (x) => Math.log1p(Math.exp(-Math.abs(x))) + Math.max(x, 0);
const geluTanh = (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

// Maclaurin's series; for |x| up to 3 its cancellation costs five of a double's sixteen digits.
export function erf(x) {
  let [term, sum] = [x, x];
  for (let n = 1; Math.abs(term) > 1e-17; n++) {
    term *= -(x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

function roundToEven(x) {
  const rounded = Math.round(x);
  return rounded - x === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

/** Operations of one tensor, with the numbers that they take. */
export const unary = {
  relu: [(x) => Math.max(x, 0)],
  leakyRelu: [(x, slope) => (x >= 0 ? x : slope * x), 0.125],
  elu: [(x, alpha) => (x > 0 ? x : alpha * Math.expm1(x)), 1.5],
  sigmoid: [sigmoid],
  tanh: [Math.tanh],
  swish: [(x) => x * sigmoid(x)],
  gelu: [(x) => (x / 2) * (1 + erf(x / Math.SQRT2))],
  geluTanh: [gate(geluTanh)],
  clip: [(x, min, max) => Math.min(Math.max(x, min), max), -1, 2],
  exp: [Math.exp],
  log: [Math.log],
  sqrt: [Math.sqrt],
  abs: [Math.abs],
  neg: [(x) => -x],
  scale: [(x, factor) => x * factor, 2.5],
  square: [(x) => x * x],
  reciprocal: [(x) => 1 / x],
  rsqrt: [(x) => 1 / Math.sqrt(x)],
  relu6: [(x) => Math.min(Math.max(x, 0), 6)],
  hardswish: [(x) => (x * Math.min(Math.max(x + 3, 0), 6)) / 6],
  sign: [Math.sign],
  round: [roundToEven],
  floor: [Math.floor],
  ceil: [Math.ceil],
  softplus: [softplus],
  mish: [(x) => x * Math.tanh(softplus(x))],
  erf: [erf],
  sin: [Math.sin],
  cos: [Math.cos],
  not: [(x) => (x === 0 ? 1 : 0)],
};

const truth = (value) => (value ? 1 : 0);

/** Operations of two tensors, or of a tensor and a number. */
export const binary = {
  add: (a, b) => a + b,
  vecAdd: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  minimum: Math.min,
  maximum: Math.max,
  pow: (a, b) => (a === 1 ? 1 : a ** b),
  siluMul: (a, b) => a * sigmoid(a) * b,
  geluMul: (a, b) => geluTanh(a) * b,
  equal: (a, b) => truth(a === b),
  notEqual: (a, b) => truth(a !== b),
  less: (a, b) => truth(a < b),
  lessEqual: (a, b) => truth(a <= b),
  greater: (a, b) => truth(a > b),
  greaterEqual: (a, b) => truth(a >= b),
  and: (a, b) => truth(a !== 0 && b !== 0),
  or: (a, b) => truth(a !== 0 || b !== 0),
};

export const where = (condition, a, b) => map((c, x, y) => (c !== 0 ? x : y), condition, a, b);

// Movement.

export const permute = (x, axes) =>
  make(axes.map((axis) => x.shape[axis]), (index) => {
    const own = [];
    axes.forEach((axis, k) => (own[axis] = index[k]));
    return at(x, own);
  });

export const reshape = (x, shape) => ({ shape, data: x.data });

export const broadcastTo = (x, shape) => make(shape, (index) => spread(x, index));

/** `ranges` are [start, step, length], or the number of an index. */
export function slice(x, ranges) {
  const shape = ranges.filter(Array.isArray).map(([, , length]) => length);
  return make(shape, (index) => {
    let k = 0;
    return at(x, ranges.map((range) => (Array.isArray(range) ? range[0] + index[k++] * range[1] : range)));
  });
}

export function concat(parts, axis) {
  const total = parts.reduce((sum, { shape }) => sum + shape[axis], 0);
  const shape = parts[0].shape.map((length, k) => (k === axis ? total : length));
  return make(shape, (index) => {
    let place = index[axis];
    const part = parts.find((one) => place < one.shape[axis] || ((place -= one.shape[axis]), false));
    return at(part, index.map((one, k) => (k === axis ? place : one)));
  });
}

export function gather(x, chosen, axis) {
  const { length } = chosen.shape;
  const shape = [...x.shape.slice(0, axis), ...chosen.shape, ...x.shape.slice(axis + 1)];
  return make(shape, (index) => {
    const place = at(chosen, index.slice(axis, axis + length));
    return isIndex(place, x.shape[axis]) ? at(x, [...index.slice(0, axis), place, ...index.slice(axis + length)]) : NaN;
  });
}

const isIndex = (value, count) => Number.isInteger(value) && value >= 0 && value < count;

export const oneHot = (x, classes) =>
  make([...x.shape, classes], (index) => {
    const place = at(x, index.slice(0, -1));
    return isIndex(place, classes) ? truth(place === index.at(-1)) : NaN;
  });

export function topK(x, k) {
  const rows = rowsOf(x);
  const order = rows.map((row) => row.map((_, i) => i).sort((a, b) => row[b] - row[a] || a - b).slice(0, k));
  const shape = [...x.shape.slice(0, -1), k];
  return {
    indices: { shape, data: order.flat() },
    values: { shape, data: order.flatMap((indices, row) => indices.map((i) => rows[row][i])) },
  };
}

function rowsOf(x) {
  const cols = x.shape.at(-1);
  return Array.from({ length: x.data.length / cols }, (_, row) => x.data.slice(row * cols, (row + 1) * cols));
}

// Reductions.

const total = (values) => values.reduce((sum, value) => sum + value, 0);

const varianceOf = (values) => {
  const mean = total(values) / values.length;
  return total(values.map((value) => (value - mean) ** 2)) / values.length;
};

const REDUCTIONS = {
  sum: total,
  mean: (values) => total(values) / values.length,
  variance: (values) => varianceOf(values),
  std: (values) => Math.sqrt(varianceOf(values)),
  max: (values) => Math.max(...values),
  min: (values) => Math.min(...values),
  argmax: (values) => values.indexOf(Math.max(...values)),
  argmin: (values) => values.indexOf(Math.min(...values)),
  any: (values) => truth(values.some((value) => value !== 0)),
  all: (values) => truth(values.every((value) => value !== 0)),
};

export const reductions = Object.keys(REDUCTIONS);

export function reduce(name, x, axes, keepDims) {
  const inner = axes.map((axis) => x.shape[axis]);
  const full = make(x.shape.map((length, axis) => (axes.includes(axis) ? 1 : length)), (index) => {
    const values = make(inner, (place) => {
      const own = [...index];
      axes.forEach((axis, k) => (own[axis] = place[k]));
      return at(x, own);
    });
    return REDUCTIONS[name](values.data);
  });
  return keepDims ? full : reshape(full, x.shape.filter((_, axis) => !axes.includes(axis)));
}

// Softmaxes and norms.

/** Applies a function of a list to the lists along an axis. */
function along(x, axis, f) {
  const last = x.shape.map((_, k) => k).filter((k) => k !== axis).concat(axis);
  const turned = permute(x, last);
  const done = { shape: turned.shape, data: rowsOf(turned).flatMap(f) };
  const back = [];
  last.forEach((one, k) => (back[one] = k));
  return permute(done, back);
}

function softmaxOf(row) {
  const powers = row.map((value) => Math.exp(value - Math.max(...row)));
  return powers.map((power) => power / total(powers));
}

export const softmax = (x, axis) => along(x, axis, softmaxOf);

export const logSoftmax = (x, axis) => along(x, axis, (row) => softmaxOf(row).map(Math.log));

export const layerNorm = (x, gain, bias, epsilon) =>
  along(x, x.shape.length - 1, (row) => {
    const mean = total(row) / row.length;
    const variance = total(row.map((value) => (value - mean) ** 2)) / row.length;
    return row.map((value, i) => ((value - mean) / Math.sqrt(variance + epsilon)) * gain.data[i] + bias.data[i]);
  });

export const rmsNorm = (x, gain, epsilon) =>
  along(x, x.shape.length - 1, (row) => {
    const scale = Math.sqrt(total(row.map((value) => value * value)) / row.length + epsilon);
    return row.map((value, i) => (value / scale) * gain.data[i]);
  });

// Products and convolutions.

export function matmul(a, b) {
  const left = a.shape.length === 1 ? reshape(a, [1, ...a.shape]) : a;
  const right = b.shape.length === 1 ? reshape(b, [...b.shape, 1]) : b;
  const [k, lead] = [left.shape.at(-1), broadcast(left.shape.slice(0, -2), right.shape.slice(0, -2))];
  const wide = (x) => broadcastTo(x, [...lead, ...x.shape.slice(-2)]);
  const [wideLeft, wideRight] = [wide(left), wide(right)];
  const result = make([...lead, left.shape.at(-2), right.shape.at(-1)], (index) => {
    const [outer, row, col] = [index.slice(0, -2), index.at(-2), index.at(-1)];
    return total(Array.from({ length: k }, (_, i) => at(wideLeft, [...outer, row, i]) * at(wideRight, [...outer, i, col])));
  });
  const drop = [a.shape.length === 1 && result.shape.length - 2, b.shape.length === 1 && result.shape.length - 1];
  return reshape(result, result.shape.filter((_, axis) => !drop.includes(axis)));
}

/** The index that a place beyond an axis has, by a mode of padding; undefined where there are zeros. */
function bordered(place, length, mode) {
  if (place >= 0 && place < length) {
    return place;
  }
  if (mode === 'zeros') {
    return undefined;
  }
  if (mode === 'edge') {
    return place < 0 ? 0 : length - 1;
  }
  return place < 0 ? -place : 2 * (length - 1) - place;
}

/** `before` and `after` have the padding of rows and columns. */
export function conv2d(x, weights, { stride, dilation, groups, before, after, mode }) {
  const [batch, channels, ...sides] = x.shape;
  const [filters, depth, ...kernel] = weights.shape;
  const window = kernel.map((length, k) => (length - 1) * dilation[k] + 1);
  const sizes = sides.map((length, k) => Math.floor((length + before[k] + after[k] - window[k]) / stride[k]) + 1);
  const perGroup = filters / groups;
  return make([batch, filters, ...sizes], ([image, filter, row, col]) => {
    const first = Math.floor(filter / perGroup) * (channels / groups);
    const terms = make([depth, ...kernel], ([channel, i, j]) => {
      const y = bordered(row * stride[0] + i * dilation[0] - before[0], sides[0], mode);
      const z = bordered(col * stride[1] + j * dilation[1] - before[1], sides[1], mode);
      const value = y === undefined || z === undefined ? 0 : at(x, [image, first + channel, y, z]);
      return value * at(weights, [filter, channel, i, j]);
    });
    return total(terms.data);
  });
}
