// What the classes that wasm-pack binds compute, in Node and on a page.

/** Returns results of devices, batches, programs, buffers, views and errors, as values that a message can have. */
export async function results({ CustomOp, GpuCommandBatch, GpuDevice, GpuMatmulCache, TensorView }, ops, backend) {
  const number = (name) => ops.indexOf(name);
  const device = await GpuDevice.create({ backend });
  const [x, y] = [Float32Array.of(-1, 2, 3, -4), Float32Array.of(10, 20, 30, 40)];
  const all = { backend: device.backend };
  all.relu = [...await device.runOp(number('relu'), [x])];
  all.matmul = [...await device.runOp(number('matmul'), [x, y, 2, 2, 2])];

  const buffer = await device.upload(x);
  all.buffer = [buffer.length, ...await buffer.readValues()];
  const batch = device.batch();
  const sum = batch.record(number('vecAdd'), [batch.input(buffer), batch.upload(y)]);
  batch.output(sum);
  await batch.execute();
  all.batch = [...await batch.readValues(sum)];

  const recording = device.batch();
  const program = await recording.compile([recording.record(number('relu'), [recording.placeholder(4)])]);
  program.setValues(0, x);
  all.program = (await program.start(1, true, 1, [])).map((values) => [...values]);

  const cache = device.matmulCache();
  await cache.insert('w', y, { k: 2, n: 2 });
  all.cached = [...await cache.matmulCached('w', x, 2)];
  const custom = device.batch();
  const op = new CustomOp({ name: 'triple', inputs: ['x'], wgsl: 'x * 3.0', function: (value) => value * 3 });
  const tripled = custom.customElementwise(op, [custom.upload(x)], []);
  await custom.execute();
  all.custom = [...await custom.readValues(tripled)];
  all.view = [...new TensorView([2, 2]).transpose(0, 1).gather(x)];

  const thrown = (f) => {
    try {
      f();
    } catch ({ name, code, message }) {
      return [name, code, message];
    }
  };
  all.errors = [thrown(() => batch.upload([1])), thrown(() => new TensorView([2], { ofset: 1 }))];
  all.classes = [batch instanceof GpuCommandBatch, cache instanceof GpuMatmulCache];
  device.dispose();
  return all;
}

export const EXPECTED = {
  relu: [0, 2, 3, 0],
  matmul: [50, 60, -90, -100],
  buffer: [4, -1, 2, 3, -4],
  batch: [9, 22, 33, 36],
  program: [[0, 2, 3, 0]],
  cached: [50, 60, -90, -100],
  custom: [-3, 6, 9, -12],
  view: [-1, 3, 2, -4],
  errors: [
    ['RelampagoError', 'INVALID_ARGUMENT', '`values` is an object (Array), but must be a Float32Array'],
    ['RelampagoError', 'INVALID_ARGUMENT', 'TensorView: there is no option `ofset`; did you mean `offset`?'],
  ],
  classes: [true, true],
};
