// jax-js on its WebAssembly device.

import { SCALE } from '../rows.js';

export async function open({ threads }) {
  limit(threads);
  const jax = await import('@jax-js/jax');
  jax.defaultDevice('wasm');
  const ops = opsOf(jax);
  return {
    endToEnd: (row, inputs) => endToEnd(jax, row, ops[row.op], inputs),
    resident: (row, inputs) => resident(jax, row, ops[row.op], inputs),
  };
}

// It starts as many workers as there are processors, or none where memory cannot be shared, and
// has no option for it. It looks when it is loaded.
function limit(threads) {
  if (threads === 1) {
    delete globalThis.SharedArrayBuffer;
  } else {
    Object.defineProperty(navigator, 'hardwareConcurrency', { value: threads });
  }
}

function opsOf({ jit, lax, nn, numpy: np }) {
  return {
    relu: jit((x) => nn.relu(x)),
    gelu: jit((x) => nn.gelu(x, { approximate: false })),
    sigmoid: jit((x) => nn.sigmoid(x)),
    softmax: jit((x) => nn.softmax(x)),
    sum: jit((x) => np.sum(x)),
    matmul: jit((a, b) => np.matmul(a, b)),
    // `jit` makes it slower by a quarter.
    conv: (input, kernel) => lax.conv(image(input), image(kernel), [1, 1], 'VALID'),
    chain: jit((x, bias) => nn.relu(x).mul(SCALE).add(bias)),
  };
}

const image = (array) => array.reshape([1, 1, ...array.shape]);

const upload = ({ numpy }, { shapes }, inputs) => inputs.map((input, i) => numpy.array(input).reshape(shapes[i]));

// A function takes what it is given, and `data` takes the array that it reads.
function endToEnd(jax, row, op, inputs) {
  return { run: () => op(...upload(jax, row, inputs)).data() };
}

function resident(jax, row, op, inputs) {
  let [x, bias] = upload(jax, row, inputs);
  return {
    async step() {
      x = op(x, bias.ref);
      await x.blockUntilReady();
    },
    read: () => x.ref.data(),
    close: () => [x, bias].forEach((array) => array.dispose()),
  };
}
