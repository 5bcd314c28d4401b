// Runs the cases of `cases.json` and judges their results. The file comes from the library's own oracles in doubles:
// `examples/conformance_cases.rs` says what is in it.

const LARGEST = 2 ** 128 - 2 ** 104;

/**
 * Runs a case on a device. Returns the largest distance of the result from the true one as a share of what the op table
 * allows, so that a result is right up to 1, and a description of the worst element.
 */
export async function judge(device, { op, inputs, arguments: values, ...oracle }) {
  const given = inputs.map((input) => Float32Array.from(input, Number));
  const result = await device[op](...given, ...values.map(argument));
  const actual = typeof result === 'number' ? [result] : result;
  if (actual.length !== oracle.expected.length) {
    return { share: Infinity, detail: `${op} has ${actual.length} elements, not ${oracle.expected.length}` };
  }
  let [share, at] = [0, 0];
  for (const [i, value] of actual.entries()) {
    const distance = Math.min(distanceFrom(value, oracle.expected, oracle.bounds, i), flushedDistance(value, oracle, i));
    [share, at] = distance > share ? [distance, i] : [share, at];
  }
  return { share, detail: `element ${at} of ${op} is ${actual[at]}, not ${oracle.expected[at]}` };
}

/** Options have an array where the package takes a typed one. */
const argument = (value) => {
  const { factors } = Object(value);
  return factors ? { ...value, factors: Float32Array.from(factors) } : Object(value) === value ? value : Number(value);
};

const distanceFrom = (actual, values, bounds, i) => {
  const expected = Number(values[i]);
  if (Object.is(actual, expected) || actual === expected) {
    return 0;
  }
  if (Math.abs(actual) === Infinity && Math.abs(expected) >= LARGEST && actual * expected > 0) {
    return 0; // It rounds beyond the largest number.
  }
  const distance = Math.abs(actual - expected) / Number(bounds[i]);
  return Number.isNaN(distance) ? Infinity : distance;
};

/** GPUs may read denormal inputs as zeros, which has a true result of its own. */
const flushedDistance = (actual, { flushed, flushedBounds }, i) =>
  flushed ? distanceFrom(actual, flushed, flushedBounds, i) : Infinity;
