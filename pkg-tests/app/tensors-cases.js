// Random cases of tensors beside their oracle. Imports nothing of the package, as app.js does not, and returns plain data.

import * as oracle from './tensors-oracle.js';
import { randomNumbers } from './workers-tools.js';

const { sizeOf } = oracle;

/** Draws shapes, values and choices, the same for the same seed. */
function draws(seed) {
  const below = randomNumbers(seed);
  const pick = (list) => list[below(list.length)];
  const chance = (percent) => below(100) < percent;
  const between = (least, most) => least + below(most - least + 1);
  const shape = (least = 0, most = 4, longest = 5) => Array.from({ length: between(least, most) }, () => between(1, longest));
  const shuffled = (list) => {
    const left = [...list];
    return list.map(() => left.splice(below(left.length), 1)[0]);
  };
  // Eighths: sums and products of a few are exact in f32, and some are equal.
  const value = () => (below(65) - 32) / 8;
  return { below, pick, chance, between, shape, shuffled, value };
}

/** Makes tensors with their oracle's arrays: { tensor, nd }. */
function makers(draw, device) {
  const fresh = (shape, value = draw.value) => {
    const values = Float32Array.from({ length: sizeOf(shape) }, value);
    return { tensor: device.tensor(values, shape), nd: { shape, data: [...values] } };
  };
  const turned = (shape, value, depth) => {
    const axes = draw.shuffled(shape.map((_, axis) => axis));
    const under = axes.map((_, k) => shape[axes.indexOf(k)]);
    const { tensor, nd } = operand(under, value, depth);
    return { tensor: tensor.permute(axes), nd: oracle.permute(nd, axes) };
  };
  const repeated = (shape, value, depth) => {
    const cut = draw.between(0, shape.length);
    const under = shape.slice(cut).map((length) => (draw.chance(40) ? 1 : length));
    const { tensor, nd } = operand(under, value, depth);
    return { tensor: tensor.broadcastTo(shape), nd: oracle.broadcastTo(nd, shape) };
  };
  const sliced = (shape, value, depth) => {
    const ranges = shape.map((length) => rangeOf(length));
    const { tensor, nd } = operand(ranges.map(({ under }) => under), value, depth);
    return {
      tensor: tensor.slice(ranges.map(({ given }) => given)),
      nd: oracle.slice(nd, ranges.map(({ taken }) => taken)),
    };
  };
  /** A range that takes `length` elements of some more. */
  const rangeOf = (length) => {
    const step = draw.pick([1, 1, 1, 2, -1, -2]);
    const span = (length - 1) * Math.abs(step) + 1;
    const [before, after] = [draw.between(0, 2), draw.between(0, 2)];
    const under = before + span + after;
    const start = step > 0 ? before : before + span - 1;
    const end = step > 0 ? before + span : before > 0 ? before - 1 : null;
    const given = draw.chance(30) ? [start - under, end, step] : [start, end, step];
    return { under, given, taken: [start, step, length] };
  };
  const reshaped = (shape, value, depth) => {
    const { tensor, nd } = operand(draw.chance(50) ? [sizeOf(shape)] : [...shape].reverse(), value, depth);
    return { tensor: tensor.reshape(shape), nd: oracle.reshape(nd, shape) };
  };
  const halved = (shape, value, depth) => {
    const { tensor, nd } = operand(shape, value, depth);
    return { tensor: tensor.neg().neg(), nd };
  };
  /** A tensor of a shape, made by up to three movements. */
  const operand = (shape, value = draw.value, depth = 3) => {
    if (depth === 0 || draw.chance(45)) {
      return fresh(shape, value);
    }
    return draw.pick([turned, repeated, sliced, reshaped, halved])(shape, value, depth - 1);
  };
  return { fresh, operand };
}

/** A shape that broadcasts with another one. */
const compatible = (draw, shape) => {
  const cut = draw.chance(30) ? draw.between(0, shape.length) : 0;
  return shape.slice(cut).map((length) => (draw.chance(25) ? 1 : length));
};

const asAxis = (draw, axis, rank) => (draw.chance(50) ? axis : axis - rank);

/** Kinds of cases; each returns a name and pairs of a tensor and the right answer. */
const kinds = {
  unary(draw, { operand }) {
    const name = draw.pick(Object.keys(oracle.unary));
    const [f, ...numbers] = oracle.unary[name];
    // Logarithms and roots where they are numbers; the others everywhere.
    const value = ['log', 'sqrt', 'rsqrt', 'reciprocal'].includes(name) ? () => (draw.below(32) + 1) / 8 : draw.value;
    const x = operand(draw.shape(), value);
    return [name, [x.tensor[name](...numbers), oracle.map((one) => f(one, ...numbers), x.nd)]];
  },

  binary(draw, { operand }) {
    const name = draw.pick(Object.keys(oracle.binary));
    const positive = () => (draw.below(32) + 1) / 8;
    const [left, right] = name === 'pow' ? [positive, draw.value] : name === 'div' ? [draw.value, positive] : [draw.value, draw.value];
    const shape = draw.shape();
    const [first, second] = draw.chance(50) ? [shape, compatible(draw, shape)] : [compatible(draw, shape), shape];
    const a = operand(first, left);
    if (draw.chance(20)) {
      const number = right();
      return [name, [a.tensor[name](number), oracle.map(oracle.binary[name], a.nd, { shape: [], data: [number] })]];
    }
    const b = operand(second, right);
    return [name, [a.tensor[name](b.tensor), oracle.map(oracle.binary[name], a.nd, b.nd)]];
  },

  where(draw, { operand }) {
    const shape = draw.shape();
    const condition = operand(shape, () => draw.below(2));
    const [a, b] = [operand(compatible(draw, shape)), operand(compatible(draw, shape))];
    return ['where', [condition.tensor.where(a.tensor, b.tensor), oracle.where(condition.nd, a.nd, b.nd)]];
  },

  reduce(draw, { operand }) {
    const name = draw.pick(oracle.reductions);
    const value = name === 'any' || name === 'all' ? () => draw.pick([0, 0, 1, 2]) : draw.value;
    const x = operand(draw.shape(), value);
    const rank = x.nd.shape.length;
    const all = x.nd.shape.map((_, axis) => axis);
    const keepDims = draw.chance(40);
    const one = rank > 0 && draw.chance(60) ? [draw.below(rank)] : all;
    const axes = name.startsWith('arg') || one.length < 2 ? one : draw.shuffled(all).slice(0, draw.between(0, rank));
    const given = axes.map((axis) => asAxis(draw, axis, rank));
    const axis = axes === all ? undefined : given.length === 1 ? given[0] : given;
    return [name, [x.tensor[name](axis, { keepDims }), oracle.reduce(name, x.nd, axes, keepDims)]];
  },

  softmax(draw, { operand }) {
    const name = draw.pick(['softmax', 'logSoftmax']);
    const x = operand(draw.shape(1));
    const axis = draw.below(x.nd.shape.length);
    return [name, [x.tensor[name](asAxis(draw, axis, x.nd.shape.length)), oracle[name](x.nd, axis)]];
  },

  norm(draw, { operand }) {
    const x = operand(draw.shape(1));
    const rank = x.nd.shape.length;
    const at = draw.below(rank);
    const cols = [x.nd.shape[at]];
    const [gain, bias] = [operand(cols), operand(cols)];
    const epsilon = 0.01;
    const options = { epsilon, ...(at < rank - 1 || draw.chance(50) ? { axis: asAxis(draw, at, rank) } : {}) };
    // The oracle has the axis at the end.
    const order = x.nd.shape.map((_, k) => (k === at ? rank - 1 : k === rank - 1 ? at : k));
    const along = (norm, ...vectors) => oracle.permute(norm(oracle.permute(x.nd, order), ...vectors, epsilon), order);
    return draw.chance(50)
      ? ['layerNorm', [x.tensor.layerNorm(gain.tensor, bias.tensor, options), along(oracle.layerNorm, gain.nd, bias.nd)]]
      : ['rmsNorm', [x.tensor.rmsNorm(gain.tensor, options), along(oracle.rmsNorm, gain.nd)]];
  },

  matmul(draw, { operand }) {
    const [m, k, n] = [draw.between(1, 6), draw.between(1, 6), draw.between(1, 6)];
    const lead = draw.chance(50) ? [] : draw.shape(1, 3, 3);
    const a = operand(draw.chance(15) ? [k] : [...compatible(draw, lead), m, k]);
    const b = operand(draw.chance(15) ? [k] : [...(draw.chance(50) ? lead : compatible(draw, lead)), k, n]);
    return ['matmul', [a.tensor.matmul(b.tensor), oracle.matmul(a.nd, b.nd)]];
  },

  movement(draw, { operand }) {
    const x = operand(draw.shape(2));
    const rank = x.nd.shape.length;
    const [first, second] = [draw.below(rank), draw.below(rank)];
    const axes = x.nd.shape.map((_, k) => (k === first ? second : k === second ? first : k));
    const at = draw.between(0, rank);
    const wide = [...x.nd.shape.slice(0, at), 1, ...x.nd.shape.slice(at)];
    const index = draw.below(x.nd.shape[0]);
    return draw.pick([
      () => ['transpose', [x.tensor.transpose(first, second), oracle.permute(x.nd, axes)]],
      () => ['flatten', [x.tensor.flatten(), oracle.reshape(x.nd, [sizeOf(x.nd.shape)])]],
      () => ['reshape', [x.tensor.reshape([-1, x.nd.shape[0]]), oracle.reshape(x.nd, [sizeOf(x.nd.shape) / x.nd.shape[0], x.nd.shape[0]])]],
      () => ['unsqueeze', [x.tensor.unsqueeze(asAxis(draw, at, rank + 1)), oracle.reshape(x.nd, wide)]],
      () => ['squeeze', [x.tensor.squeeze(), oracle.reshape(x.nd, x.nd.shape.filter((length) => length !== 1))]],
      () => ['slice', [x.tensor.slice([index]), oracle.slice(x.nd, x.nd.shape.map((length, k) => (k === 0 ? index : [0, 1, length])))]],
    ])();
  },

  concat(draw, { operand }) {
    const shape = draw.shape(1);
    const axis = draw.below(shape.length);
    const lengths = Array.from({ length: draw.between(1, 4) }, () => draw.between(1, 3));
    const parts = lengths.map((length) => operand(shape.map((own, k) => (k === axis ? length : own))));
    const [first, ...others] = parts.map(({ tensor }) => tensor);
    return ['concat', [first.concat(others, asAxis(draw, axis, shape.length)), oracle.concat(parts.map(({ nd }) => nd), axis)]];
  },

  stack(draw, { operand }, { Tensor }) {
    const shape = draw.shape(0, 3);
    const parts = Array.from({ length: draw.between(1, 4) }, () => operand(shape));
    const axis = draw.between(0, shape.length);
    const wide = parts.map(({ nd }) => oracle.reshape(nd, [...shape.slice(0, axis), 1, ...shape.slice(axis)]));
    return ['stack', [Tensor.stack(parts.map(({ tensor }) => tensor), axis), oracle.concat(wide, axis)]];
  },

  gather(draw, { operand, fresh }) {
    const x = operand(draw.shape(1, 3));
    const axis = draw.below(x.nd.shape.length);
    const indices = indicesBelow(draw, fresh, draw.shape(0, 2), x.nd.shape[axis]);
    return ['gather', [x.tensor.gather(indices.tensor, asAxis(draw, axis, x.nd.shape.length)), oracle.gather(x.nd, indices.nd, axis)]];
  },

  oneHot(draw, { operand }) {
    const classes = draw.between(1, 6);
    const x = indicesBelow(draw, operand, draw.shape(0, 3), classes);
    return ['oneHot', [x.tensor.oneHot(classes), oracle.oneHot(x.nd, classes)]];
  },

  topK(draw, { operand }) {
    const x = operand(draw.shape(1));
    const k = draw.between(1, x.nd.shape.at(-1));
    const [found, right] = [x.tensor.topK(k), oracle.topK(x.nd, k)];
    return ['topK', [found.values, right.values], [found.indices, right.indices]];
  },

  conv2d(draw, { operand }) {
    const [groups, depth, perGroup] = [draw.between(1, 2), draw.between(1, 2), draw.between(1, 2)];
    const kernel = [draw.between(1, 3), draw.between(1, 3)];
    const [stride, dilation] = [0, 0].map(() => [draw.between(1, 2), draw.between(1, 2)]);
    const sides = [draw.between(5, 8), draw.between(5, 8)];
    const x = operand([draw.between(1, 2), groups * depth, ...sides]);
    const weights = operand([groups * perGroup, depth, ...kernel]);
    const window = kernel.map((length, k) => (length - 1) * dilation[k] + 1);
    const { padding, before, after, mode } = paddingCase(draw, sides, window, stride);
    const found = x.tensor.conv2d(weights.tensor, { stride, dilation, groups, padding });
    return ['conv2d', [found, oracle.conv2d(x.nd, weights.nd, { stride, dilation, groups, before, after, mode })]];
  },
};

function paddingCase(draw, sides, window, stride) {
  const total = sides.map((length, k) =>
    Math.max(0, (Math.ceil(length / stride[k]) - 1) * stride[k] + window[k] - length));
  const same = { before: total.map((one) => one >> 1), after: total.map((one) => one - (one >> 1)) };
  const size = [draw.between(0, 2), draw.between(0, 2)];
  const mode = draw.pick(['zeros', 'edge', 'reflect']);
  return draw.pick([
    { padding: 'valid', before: [0, 0], after: [0, 0], mode: 'zeros' },
    { padding: 'same', ...same, mode: 'zeros' },
    { padding: size, before: size, after: size, mode: 'zeros' },
    { padding: size[0], before: [size[0], size[0]], after: [size[0], size[0]], mode: 'zeros' },
    { padding: { mode }, ...same, mode },
    { padding: { mode, size }, before: size, after: size, mode },
  ]);
}

/** Whether a value is right: within some f32 roundings of results of moderate numbers. */
const isNear = (value, right) =>
  Object.is(value, right) || value === right || Math.abs(value - right) <= 2e-5 * (1 + Math.abs(right)) ||
  (Number.isNaN(value) && Number.isNaN(right));

/** What is wrong with a tensor's values, if anything. */
function complaint(name, seed, tensor, values, right) {
  const place = `${name}, case ${seed}`;
  if (String(tensor.shape) !== String(right.shape) || values.length !== right.data.length) {
    return [`${place}: shape [${tensor.shape}] of ${values.length}, not [${right.shape}]`];
  }
  const wrong = right.data.findIndex((value, i) => !isNear(values[i], value));
  return wrong < 0 ? [] : [`${place}: element ${wrong} of [${right.shape}] is ${values[wrong]}, not ${right.data[wrong]}`];
}

/** Indices of the host below `count`, or computed ones, of which some are none. */
function indicesBelow(draw, make, shape, count) {
  if (draw.chance(50)) {
    return make(shape, () => draw.below(count));
  }
  const { tensor, nd } = make(shape, () => draw.pick([draw.below(count + 1), draw.below(count), -1, 0.5]));
  // A program would remove operations that cancel, and check what the host has.
  return { tensor: tensor.clip(-1, 1000), nd };
}

/** Runs cases of all kinds in turn. Returns how many of each operation there were, and what is wrong. */
export async function randomCases(relampago, device, { first = 1, count, chosen = Object.keys(kinds) }) {
  const counts = {};
  const wrong = [];
  for (let seed = first; seed < first + count; seed++) {
    const draw = draws(seed);
    const kind = chosen[seed % chosen.length];
    try {
      const [name, ...results] = kinds[kind](draw, makers(draw, device), relampago);
      counts[name] = (counts[name] ?? 0) + 1;
      const values = await device.read(results.map(([tensor]) => tensor));
      wrong.push(...results.flatMap(([tensor, right], i) => complaint(name, seed, tensor, values[i], right)));
    } catch (error) {
      wrong.push(`${kind}, case ${seed}: ${error.stack}`);
    }
  }
  return { counts, wrong: wrong.slice(0, 20), wrongs: wrong.length };
}
