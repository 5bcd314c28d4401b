// Loops that make objects of 4 MB a thousand times, await nothing but the package, and dispose of nothing. Prints the size of
// the module's memory after each, in MB, and how often the collector is prompted by a loop that disposes of all it makes.

/** The module's memory, which the package does not give away. */
let memory;
const { instantiate } = WebAssembly;
WebAssembly.instantiate = async (...values) => {
  const result = await instantiate(...values);
  ({ memory } = (result.instance ?? result).exports);
  return result;
};

const { default: init, GpuDevice } = await import('relampago');
await init();
const device = await GpuDevice.create({ backend: 'simd' });
const values = new Float32Array(1_000_000);
const batch = device.batch();
const program = await batch.compile([batch.relu(batch.placeholder(values.length))]);
const step = device.jit((x) => x.mul(0.5).add(1));
let state = await device.tensor(values).run();

const LOOPS = {
  upload: () => device.upload(values),
  program: () => program.run([values]),
  async batch() {
    const one = device.batch();
    one.relu(one.upload(values));
    await one.execute();
  },
  tensor: (i) => device.full([values.length], i).add(1).run(),
  input: (i) => device.tensor(values).add(i).data(),
  async jit() {
    state = await step(state);
  },
};

const sizes = {};
for (const [name, run] of Object.entries(LOOPS)) {
  for (let i = 0; i < 1000; i++) {
    await run(i);
  }
  sizes[name] = memory.buffer.byteLength / 1e6;
}

/** The buffers of 128 MB by which the package prompts the collector, in a loop whose objects are larger than these. */
async function prompts() {
  const { ArrayBuffer } = globalThis;
  let count = 0;
  globalThis.ArrayBuffer = class extends ArrayBuffer {
    constructor(length) {
      super(length);
      count += length === 1 << 27 ? 1 : 0;
    }
  };
  const [large, small] = [40_000_000, 1].map((length) => new Float32Array(length));
  for (let i = 0; i < 10; i++) {
    for (const array of [large, small]) {
      (await device.upload(array)).dispose();
    }
  }
  globalThis.ArrayBuffer = ArrayBuffer;
  return count;
}

console.log(JSON.stringify({ sizes, prompts: await prompts() }));
