// Compiled, never run: the whole API as `tsc --strict` sees it.

import init, { GpuDevice, RelampagoError, type ResultOptions } from 'relampago';
import loadStatic, { GpuDevice as StaticDevice } from 'relampago/static';

// `any` would make every other check here pass, so it is looked for by name.
type IsAny<T> = 0 extends 1 & T ? true : false;
function exactly<T>(_value: IsAny<T> extends true ? never : T): void {}

export async function everything(signal: AbortSignal, x: Float32Array, y: Float32Array): Promise<void> {
  await init();
  await init(new URL('https://example.org/relampago.wasm'));
  await init('relampago.wasm');
  await init(new Response());
  await init(new Uint8Array());
  await init(new WebAssembly.Module(new Uint8Array()));

  using device = await GpuDevice.create({ backend: 'auto', signal });
  await GpuDevice.create();
  using _remote: GpuDevice = await GpuDevice.create({ worker: true, threads: 4 });
  exactly<'webgpu' | 'simd'>(device.backend);
  exactly<GPUDevice | undefined>(device.gpuDevice);

  await vectors(device, signal, x, y);
  await scalars(device, signal, x, y);
  await batches(device, x, y);
  await memories(device, signal, x, new Float32Array(new SharedArrayBuffer(16)));
  device.dispose();
}

async function vectors(device: GpuDevice, signal: AbortSignal, x: Float32Array, y: Float32Array) {
  const plain = [
    device.relu(x), device.leakyRelu(x, 0.1), device.elu(x, 1), device.sigmoid(x), device.tanh(x),
    device.swish(x), device.gelu(x), device.geluTanh(x), device.clip(x, 0, 1), device.exp(x),
    device.log(x), device.sqrt(x), device.abs(x), device.neg(x), device.scale(x, 2),
    device.vecAdd(x, y), device.sub(x, y), device.mul(x, y), device.div(x, y),
    device.minimum(x, y), device.maximum(x, y), device.siluMul(x, y), device.geluMul(x, y), device.biasAdd(x, y, 2, 3),
    device.softmax(x), device.logSoftmax(x), device.softmaxRows(x, 2, 3), device.logSoftmaxRows(x, 2, 3),
    device.matmul(x, y, 2, 3, 4), device.transpose(x, 2, 3),
    device.attention(x, y, y, { tokens: 2, heads: 1, headLen: 2, causal: 0, softCap: 30 }),
    device.gatherRows(x, y, 2, 3), device.rope(x, { tokens: 1, heads: 1, headLen: 2, factors: y }),
    device.takeAlongRows(x, y, 2, 3, 2), device.argmaxRows(x, 2, 3), device.topKRows(x, 2, 3, 2),
    device.convolve2d(x, y, { inputRows: 9, inputCols: 9, kernelRows: 3, kernelCols: 3 }),
  ];
  exactly<Promise<Float32Array>[]>(plain);
  exactly<Float32Array>(await device.relu(x));
  exactly<Float32Array>(await device.relu(x, { signal }));
  exactly<Float32Array>(await device.matmul(x, y, 2, 3, 4, { signal }));
  exactly<Float32Array>(await device.exp(x, { into: new Float32Array(4), signal }));
  const options = {
    inputRows: 9, inputCols: 9, kernelRows: 3, kernelCols: 3, padding: 'same', strideRows: 2, strideCols: 2,
  } as const;
  exactly<Float32Array>(await device.convolve2d(x, y, options, { signal }));
}

async function scalars(device: GpuDevice, signal: AbortSignal, x: Float32Array, y: Float32Array) {
  exactly<number>(await device.dot(x, y));
  exactly<number>(await device.sum(x));
  exactly<number>(await device.max(x));
  exactly<number>(await device.min(x));
  exactly<number>(await device.mean(x));
  exactly<number>(await device.argmax(x, { signal }));
}

async function batches(device: GpuDevice, x: Float32Array, y: Float32Array) {
  using weights = await device.upload(x);
  exactly<number>(weights.length);
  exactly<GPUBuffer | undefined>(weights.gpuBuffer);
  using batch = device.batch();
  const input = batch.input(weights);
  const uploaded = batch.upload(y);
  let id = batch.relu(input);
  id = batch.vecAdd(id, uploaded);
  id = batch.clip(batch.scale(id, 0.5), 0, 1);
  id = batch.matmul(id, uploaded, 2, 3, 4);
  id = batch.convolve2d(id, uploaded, { inputRows: 9, inputCols: 9, kernelRows: 3, kernelCols: 3, padding: 'valid' });
  id = batch.softmaxRows(id, 2, 3);
  exactly<typeof input>(batch.sum(id));
  exactly<void>(await batch.execute());
  using program = await batch.compile([id]);
  exactly<Float32Array[]>(await program.read([x, weights]));
  exactly<Float32Array[]>(await program.read([x, weights], { into: [new Float32Array(4)] }));
  const [buffer] = await program.runN([weights], 10, [[0, 0]]);
  exactly<number | undefined>(buffer?.length);
  exactly<string[]>((await program.explain()).kernels.flatMap((kernel) => kernel.operations));
  const [kernel] = (await program.time([x, weights])).kernels;
  exactly<'webgpu' | 'simd' | undefined>(kernel?.backend);
  exactly<number | undefined>(kernel?.milliseconds);
  exactly<[boolean, number]>([device.info.worker, device.info.threads]);
  for await (const [values] of program.stream([[x]])) {
    exactly<Float32Array | undefined>(values);
  }
  exactly<Float32Array>(await batch.read(id));
  batch.dispose();
  weights.dispose();
}

// Results have the memory that they are asked to lie in, and their own otherwise.
async function memories(device: GpuDevice, signal: AbortSignal, x: Float32Array, shared: Float32Array<SharedArrayBuffer>) {
  const results: Float32Array<ArrayBuffer>[] = [
    await device.relu(x), await device.relu(x, {}), await device.relu(x, { signal }), await device.relu(shared),
    await device.relu(x, { into: new Float32Array(4) }),
  ];
  exactly<Float32Array<ArrayBuffer>[]>(results);
  exactly<Float32Array<SharedArrayBuffer>>(await device.relu(x, { into: shared }));
  exactly<Float32Array>(await device.matmul(x, x, 2, 2, 2, { into: x, signal }));
  const options: ResultOptions = { into: x };
  exactly<Float32Array>(await device.relu(x, options));
  // @ts-expect-error it may be shared
  const own: Float32Array<ArrayBuffer> = await device.relu(x, { into: x });
  using batch = device.batch();
  using program = await batch.compile([batch.relu(batch.placeholder(4))]);
  exactly<Float32Array<ArrayBuffer>[]>(await program.read([shared]));
  exactly<Float32Array<ArrayBuffer>[]>(await program.read([x], { signal }));
  exactly<Float32Array[]>(await program.read([x], { into: [x, undefined] }));
  exactly<Float32Array<ArrayBuffer | SharedArrayBuffer>[]>(await program.read([x], { into: [shared], signal }));
  using buffer = await device.upload(x);
  exactly<Float32Array<ArrayBuffer>>(await buffer.read({ signal }));
  exactly<Float32Array<SharedArrayBuffer>>(await buffer.read({ into: shared, signal }));
  const id = batch.input(buffer);
  exactly<Float32Array<ArrayBuffer>>(await batch.read(id));
  exactly<Float32Array<SharedArrayBuffer>>(await batch.read(id, { into: shared }));
  return own;
}

export async function wrong(device: GpuDevice, x: Float32Array): Promise<void> {
  // @ts-expect-error there is no such back-end
  await GpuDevice.create({ backend: 'cuda' });
  // @ts-expect-error yes or no
  await GpuDevice.create({ worker: 'yes' });
  // @ts-expect-error a number
  await GpuDevice.create({ threads: '4' });
  // @ts-expect-error numbers come alone
  await device.sum(x, { into: x });
  // @ts-expect-error a device comes from `create`
  new GpuDevice();
  // @ts-expect-error plain arrays are not copied silently
  await device.relu([1, 2, 3]);
  // @ts-expect-error the length of the inner dimension is missing
  await device.matmul(x, x, 2, 2);
  // @ts-expect-error a misspelt option
  await device.convolve2d(x, x, { inputRows: 1, inputCols: 1, kernelRows: 1, kernelCols: 1, pading: 'same' });
  // @ts-expect-error nothing can be assigned to what the device found
  device.backend = 'simd';
}

// The same interface.
export const same: [typeof init, typeof GpuDevice] = [loadStatic, StaticDevice];

export function handle(error: unknown): string {
  if (error instanceof RelampagoError) {
    const asError: Error = error;
    exactly<string>(error.code);
    return asError.message;
  }
  return '';
}
