// Tensors that several reads use at once, that are disposed of while they are read, and reads that are aborted.

const outcome = (promise) => promise.then((value) => value ?? 'no error', ({ code, message }) => `${code} ${message}`);

/** More programs at once than a device keeps. */
export async function manyPrograms(device) {
  const x = device.tensor(Float32Array.from({ length: 20_000 }, (_, i) => Math.floor(i / 200)), [100, 200]);
  const sums = await Promise.all(Array.from({ length: 100 }, (_, row) => outcome(x.slice([row]).sum().item())));
  return sums.filter((sum, row) => sum !== 200 * row);
}

/** How often the values of one tensor go to the device where many reads use it at once. */
export async function uploads(device) {
  let count = 0;
  const counted = (method) => (values) => {
    const buffer = Object.getPrototypeOf(device)[method].call(device, values);
    count += buffer === undefined ? 0 : 1;
    return buffer;
  };
  device.upload = counted('upload');
  device.uploadNow = counted('uploadNow');
  const values = new Float32Array(2000).fill(2);
  const x = device.tensor(values);
  values.fill(5);
  const sums = await Promise.all(Array.from({ length: 10 }, () => x.sum().item()));
  await device.run([x, x.add(1)]);
  delete device.upload;
  delete device.uploadNow;
  return { count, sums };
}

/** What reads come to whose tensor is disposed of right after they began: with values here and on the device. */
export async function disposals({ GpuDevice }, device) {
  const results = [];
  for (const length of [2, 2000]) {
    for (const uses of [0, 1, 2]) {
      const x = device.tensor(new Float32Array(length).fill(1));
      for (let use = 0; use < uses; use++) {
        await x.sum().item();
      }
      const reads = [x.sum().item(), x.data().then((values) => values.length), x.sum().run().then((sum) => sum.item())];
      reads.push(device.jit((a) => a.sum())(x).then((sum) => sum.item()));
      x.dispose();
      results.push(await Promise.all(reads.map(outcome)));
    }
  }
  // A leaf that is read again on a disposed device fails, and nothing else does.
  const gone = await GpuDevice.create({ backend: 'simd', worker: device.info.worker });
  const x = gone.tensor(new Float32Array(2000));
  await x.data();
  gone.dispose();
  return { results, gone: await outcome(x.data()) };
}

/** Watches the bytes of the browser's GPU buffers. Returns functions for the most at a time, and to end that. */
function watchGpu() {
  const [{ createBuffer }, { destroy }] = [GPUDevice.prototype, GPUBuffer.prototype];
  let [bytes, most] = [0, 0];
  GPUDevice.prototype.createBuffer = function (descriptor) {
    bytes += descriptor.size;
    most = Math.max(most, bytes);
    return createBuffer.call(this, descriptor);
  };
  GPUBuffer.prototype.destroy = function () {
    bytes -= this.size;
    destroy.call(this);
  };
  const end = () => Object.assign(GPUDevice.prototype, { createBuffer }) && Object.assign(GPUBuffer.prototype, { destroy });
  return { most: () => most, end };
}

/** The same for what a worker holds, as results of 4 MB. */
function watchWorker() {
  const { postMessage } = Worker.prototype;
  const held = new Set();
  let most = 0;
  Worker.prototype.postMessage = function (message, ...rest) {
    const [, as, , name, , values] = message;
    as && name === 'at' && held.add(as);
    name === 'release' && values[0].forEach((number) => held.delete(number));
    most = Math.max(most, held.size);
    return postMessage.call(this, message, ...rest);
  };
  return { most: () => most * 4e6, end: () => Object.assign(Worker.prototype, { postMessage }) };
}

/** The most megabytes on a GPU or in a worker at a time, in a loop that makes 800 there and disposes of nothing. */
export async function loop(device) {
  if (!device.gpuDevice && !device.info.worker) {
    return 0;
  }
  const { most, end } = device.gpuDevice ? watchGpu() : watchWorker();
  const x = device.tensor(new Float32Array(1_000_000));
  for (let i = 0; i < 200; i++) {
    await x.mul(i).run();
  }
  end();
  return most() / 1e6;
}

/** What comes of signals for tensors that are computed, and for those that are not. */
export async function signals(device) {
  const x = device.tensor([1, 2]);
  const aborted = { signal: AbortSignal.abort('why') };
  const calls = {
    data: (options) => x.data(options),
    computed: (options) => x.add(1).data(options),
    run: (options) => x.run(options),
    read: (options) => device.read([x], options),
    none: (options) => device.read([], options),
    large: (options) => device.tensor(new Float32Array(2000)).run(options),
  };
  const results = {};
  for (const [name, call] of Object.entries(calls)) {
    const { cause } = await call(aborted).then(() => ({}), (error) => error);
    const right = await outcome(call({ signal: new AbortController().signal }).then(() => undefined));
    results[name] = [await outcome(call(aborted)), cause, await outcome(call({ signal: 5 })), right];
  }
  return results;
}
