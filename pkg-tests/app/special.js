// Ordinary numbers, NaN, ±∞, −0, denormals and the like through every operation, in every way that there is to
// run one. The cases and what is right come from the crate's own tests, for every operation of the table.

const WAYS = {
  direct: (device, op, inputs, parameters) => device[op](...inputs, ...parameters),

  async into(device, op, inputs, parameters, length) {
    const into = new Float32Array(length);
    const result = await device[op](...inputs, ...parameters, { into });
    return result === into ? into : 'another array';
  },

  async batch(device, op, inputs, parameters) {
    const batch = device.batch();
    const id = batch[op](...inputs.map((input) => batch.upload(input)), ...parameters);
    await batch.execute();
    const result = await batch.read(id);
    batch.dispose();
    return result;
  },

  program: (device, ...call) => compiled(device, call, (program, inputs) => program.read(inputs)),

  programInto: (device, ...call) => compiled(device, call, async (program, inputs, length) => {
    const into = [new Float32Array(length)];
    const [result] = await program.read(inputs, { into });
    return [result === into[0] ? result : 'another array'];
  }),

  resident: (device, ...call) => compiled(device, call, async (program, inputs) => {
    const buffers = await Promise.all(inputs.map((input) => device.upload(input)));
    const [buffer] = await program.run(buffers);
    const result = await buffer.read();
    [...buffers, buffer].forEach((object) => object.dispose());
    return [result];
  }),
};

async function compiled(device, [op, inputs, parameters, length], use) {
  const batch = device.batch();
  const id = batch[op](...inputs.map((input) => batch.placeholder(input.length)), ...parameters);
  const program = await batch.compile([id]);
  batch.dispose();
  const [result] = await use(program, inputs, length);
  program.dispose();
  return result;
}

/** How many results of how many operations were right, and the first wrong ones. */
export async function special(device, cases) {
  const outcome = { right: 0, wrong: [], operations: new Set() };
  for (const one of cases) {
    outcome.operations.add(one.op);
    let first;
    for (const [name, way] of Object.entries(WAYS)) {
      if (one.scalar && name === 'into') {
        continue;
      }
      const result = await way(device, one.op, one.inputs.map((input) => input.slice()), one.parameters, one.want.length);
      const values = typeof result === 'number' ? [result] : result;
      first ??= values;
      const isOfType = name !== 'direct' || one.scalar === (result !== values);
      const wrong = isOfType ? complaint(one, values, first, device.backend === 'webgpu') : `${one.op} gave ${result}`;
      wrong ? outcome.wrong.push(`${name}: ${wrong}`) : outcome.right++;
    }
  }
  return { ...outcome, wrong: outcome.wrong.slice(0, 20), operations: outcome.operations.size };
}

/**
 * What is wrong with a case's result, if anything is: it is not right, or not that of the first way, of which
 * not even a zero's sign may differ.
 */
function complaint(one, values, first, onGpu) {
  const { op, inputs, want } = one;
  if (values.length !== want.length) {
    return `${op} gave ${values}`;
  }
  const at = want.findIndex((_, i) => !isRight(values[i], one, i, onGpu) || !Object.is(values[i], first[i]));
  const shown = inputs.map((input) => `${input.slice(0, 8)}${input.length > 8 ? `, … (${input.length})` : ''}`);
  return at < 0 ? '' : `${op} of ${shown.join(' and ')}: value ${at} is ${values[at]}, not ${want[at][0]} and ${first[at]}`;
}

function isRight(value, { want, flushed, orNaN }, i, onGpu) {
  return isNear(value, want[i]) || (onGpu && ((orNaN && Number.isNaN(value)) || (flushed && isNear(value, flushed[i]))));
}

/** As the crate's own tests judge it. */
function isNear(value, [right, slack]) {
  if (Number.isNaN(right)) {
    return Number.isNaN(value);
  }
  const overflows = Math.abs(value) === Infinity && Math.abs(right) >= LARGEST && value * right > 0;
  return value === right || overflows || (Math.abs(right) < Infinity && Math.abs(value - right) <= slack);
}

const LARGEST = (2 - 2 ** -23) * 2 ** 127;
