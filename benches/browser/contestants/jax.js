// jax-js on its WebAssembly device, or on WebGPU.

import { SCALE } from '../rows.js';

export async function open({ threads, backend }) {
  limit(threads);
  const jax = await import('@jax-js/jax');
  const device = backend || 'wasm';
  if (!(await jax.init(device)).includes(device)) {
    throw new Error(`jax-js has no device ${device} here`);
  }
  jax.defaultDevice(device);
  const ops = opsOf(jax);
  return {
    endToEnd: (row, inputs) => (row.weights ? weighted : endToEnd)(jax, row, ops[row.op], inputs),
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
    perceptron: jit((x, w1, b1, w2, b2) => np.matmul(nn.relu(np.matmul(x, w1).add(b1)), w2).add(b2)),
    mlp: jit((x, w1, w2) => np.matmul(nn.gelu(np.matmul(x, w1), { approximate: false }), w2)),
  };
}

const image = (array) => array.reshape([1, 1, ...array.shape]);

const upload = ({ numpy }, { shapes }, inputs) => inputs.map((input, i) => numpy.array(input).reshape(shapes[i]));

// A function takes what it is given, and `data` takes the array that it reads.
function endToEnd(jax, row, op, inputs) {
  return { run: () => op(...upload(jax, row, inputs)).data() };
}

// All inputs but the first stay on the device.
function weighted(jax, row, op, inputs) {
  const [, ...weights] = upload(jax, row, inputs);
  return {
    run: () => op(jax.numpy.array(inputs[0]).reshape(row.shapes[0]), ...weights.map((array) => array.ref)).data(),
    close: () => weights.forEach((array) => array.dispose()),
  };
}

function resident(jax, row, op, inputs) {
  let [x, ...rest] = upload(jax, row, inputs);
  return {
    async step() {
      x = op(x, ...rest.map((array) => array.ref));
      // A GPU's queue need not be waited for.
      await (jax.defaultDevice() === 'wasm' && x.blockUntilReady());
    },
    read: () => x.ref.data(),
    close: () => [x, ...rest].forEach((array) => array.dispose()),
  };
}
