// Functions of tensors beside NumPy, SciPy and PyTorch: the cases that Rust's tests have.

/** Returns the shape and the elements of a line. */
const valuesOf = (line) => {
  const [shape, elements] = line.split(':');
  const numbers = elements.split(' ').filter(Boolean).map((word) => Number(word.replace('inf', 'Infinity')));
  return { shape: shape.split(',').filter(Boolean).map(Number), elements: numbers };
};

/** Returns the cases of `tests/data/numpy/cases.txt`. */
const casesOf = (text) => {
  const cases = [];
  for (const line of text.trimEnd().split('\n')) {
    const kind = { 'x ': 'inputs', 'y ': 'results' }[line.slice(0, 2)];
    kind ? cases.at(-1)[kind].push(valuesOf(line.slice(2))) : cases.push({ name: line, inputs: [], results: [] });
  }
  return cases;
};

const pairs = ([a, b, c, d]) => [[a, b], [c, d]];

const pool = ([window, stride, padding, isCeil, countsPadding], isMean) => [[window], {
  stride, padding: [padding], ceil: isCeil === 1, ...(isMean && { countPadding: countsPadding === 1 }),
}];

/** Functions by their names in the cases, of the device, the tensors, and the numbers and words after the name. */
const FUNCTIONS = {
  arange: (device, _, [start, end, step]) => device.arange(start, end, step),
  linspace: (device, _, numbers) => device.linspace(...numbers),
  eye: (device, _, numbers) => device.eye(...numbers),
  pad_with: (_, [x], [a, b, c, d, value]) => x.pad(pairs([a, b, c, d]), { value }),
  pad: (_, [x], sides, [mode]) => x.pad(pairs(sides.slice(1)), { mode }),
  tile: (_, [x], counts) => x.tile(counts.length > 1 ? counts : counts[0]),
  repeat: (_, [x], numbers) => x.repeat(...numbers),
  roll: (_, [x], numbers) => x.roll(...numbers),
  flip: (_, [x], axes) => x.flip(axes),
  split: (_, [x], [parts, axis]) => x.split(parts, axis),
  split_at: (_, [x], numbers) => x.split(numbers.slice(0, -1), numbers.at(-1)),
  prod: (_, [x], axes) => (axes.length > 0 ? x.prod(axes) : x.prod()),
  norm: (_, [x], [p, ...axes]) => (axes.length > 0 ? x.norm(axes[0], { p }) : x.norm({ p })),
  modulo: (_, [a, b]) => a.modulo(b),
  fmod: (_, [a, b]) => a.fmod(b),
  atan2: (_, [y, x]) => y.atan2(x),
  logaddexp: (_, [a, b]) => a.logaddexp(b),
  hypot: (_, [a, b]) => a.hypot(b),
  bincount: (_, [x, weights], [count]) => x.bincount(count, { weights }),
  histogram: (_, [x], numbers) => x.histogram(...numbers),
  scatter_add: (_, [x, indices, source], [axis]) => x.scatterAdd(indices, source, axis),
  resize: (_, [x], [, rows, cols], [mode]) =>
    x.resize([rows, cols], { mode: mode.replace('+', ''), antialias: mode.endsWith('+') }),
  max_pool: (_, [x], numbers) => x.maxPool(...pool(numbers, false)),
  avg_pool: (_, [x], numbers) => x.avgPool(...pool(numbers, true)),
  max_pool2d: (_, [x]) => x.maxPool([2, 3], { stride: [2, 1], padding: [1, 0], ceil: true }),
  avg_pool2d: (_, [x]) => x.avgPool([3, 2], { stride: 2, padding: 1, ceil: true, countPadding: false }),
  cumsum: (_, [x], [axis]) => x.cumsum(axis),
  cumprod: (_, [x], [axis]) => x.cumprod(axis),
  sort: (_, [x], [axis]) => x.sort(axis),
  argsort: (_, [x], [axis]) => x.argsort(axis),
  fft: (_, [x], [axis]) => x.fft(axis),
  ifft: (_, [x], [axis]) => x.ifft(axis),
  rfft: (_, [x], [axis]) => x.rfft(axis),
  irfft: (_, [x], numbers) => x.irfft(...numbers),
  stft: (_, [x, window], [, hop]) => x.stft(window, hop),
  istft: (_, [x, window], [, hop, length]) => x.istft(window, hop, length),
};

/** Returns the results of a case. */
const record = (device, Tensor, { name }, inputs) => {
  if (name.startsWith('einsum|')) {
    return [Tensor.einsum(name.slice('einsum|'.length), inputs)];
  }
  const [own, ...words] = name.split(' ');
  const numbers = words.map((word) => Number(word.replace('inf', 'Infinity')));
  return [FUNCTIONS[own](device, inputs, numbers, words)].flat();
};

/** The number beside which an error is small. */
const boundOf = ({ name, inputs }, wanted, at, largest) => {
  if (['hypot', 'logaddexp', 'atan2'].includes(name)) {
    return Math.abs(wanted);
  }
  return ['modulo', 'fmod'].includes(name) ? Math.abs(inputs[0].elements[at]) : largest;
};

/** The functions of two tensors element by element. */
const PAIRWISE = ['modulo', 'fmod', 'atan2', 'logaddexp', 'hypot'];

/** Whether an element of an elementwise function, or the result, is so small that a GPU may take it for 0. */
const isTiny = ({ name, inputs, results }, at) => PAIRWISE.includes(name)
  && [...inputs, ...results].some(({ elements }) => elements[at] !== 0 && Math.abs(elements[at]) < 2 ** -126);

/** Returns a message for each element that differs from the wanted one. */
const differences = (own, result, { shape, values, backend }) => {
  if (String(shape) !== String(result.shape)) {
    return [`${own.name}: shape ${shape}, but ${result.shape}`];
  }
  const largest = result.elements.filter(Number.isFinite).reduce((most, x) => Math.max(most, Math.abs(x)), 1);
  const isNear = (value, at) => {
    const wanted = result.elements[at];
    const isSame = Object.is(value, Math.fround(wanted)) || value === Math.fround(wanted);
    return isSame || (backend === 'webgpu' && isTiny(own, at)) || Math.abs(value - wanted) <= 4e-6 * boundOf(own, wanted, at, largest);
  };
  return [...values].flatMap((value, at) => (isNear(value, at) ? [] : [`${own.name}: ${value} at ${at}, but ${result.elements[at]}`]));
};

/** Returns the number of cases, and messages for elements that differ. */
export async function numpyCases({ Tensor }, device, text) {
  const wrong = [];
  const cases = casesOf(text);
  for (const own of cases) {
    const inputs = own.inputs.map(({ shape, elements }) => device.tensor(Float32Array.from(elements), shape));
    const results = record(device, Tensor, own, inputs);
    const values = await device.read(results);
    if (results.length !== own.results.length) {
      wrong.push(`${own.name}: ${results.length} results`);
    }
    own.results.forEach((result, at) =>
      wrong.push(...differences(own, result, { shape: results[at].shape, values: values[at], backend: device.backend })));
  }
  return { count: cases.length, wrong: wrong.slice(0, 20) };
}
