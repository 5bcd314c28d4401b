// Compiled, never run: the types of views, caches and custom operations, as `tsc --strict` sees them.

import init, {
  CustomOp, GpuDevice, TensorView, type CachedWeights, type HalfPrecision, type Partials, type Policy,
  type Tuning, type Verification,
} from 'relampago';

type IsAny<T> = 0 extends 1 & T ? true : false;
function exactly<T>(_value: IsAny<T> extends true ? never : T): void {}

export async function everything(signal: AbortSignal, x: Float32Array): Promise<void> {
  await init();
  using device = await GpuDevice.create();
  exactly<Float32Array>(await device.relu(x));

  using half = await GpuDevice.create({ halfPrecision: true, worker: true });
  exactly<HalfPrecision>(half.info.halfPrecision);

  using cache = device.matmulCache();
  exactly<void>(await cache.insert('layer', x, { k: 2, n: 3, format: 'q8_0', transposed: true }, { signal }));
  exactly<void>(await cache.insertBlocks('other', new Uint8Array(34), { k: 32, n: 1, format: 'q8_0' }));
  exactly<Float32Array>(await cache.matmulCached('layer', x, 1));
  using recording = device.batch();
  const input = recording.upload(x);
  exactly<typeof input>(recording.matmulCached(cache, 'layer', input, 1));
  exactly<CachedWeights[]>(await cache.weights());
  exactly<boolean>(await cache.remove('layer'));

  using view = new TensorView([3, 4], { layout: { tileSize: [2, 2] }, offset: 1 });
  using turned = view.transpose(0, 1).slice(0, 1, 3);
  exactly<number[]>(turned.shape);
  exactly<number>(turned.reduce('sum', x));
  exactly<Partials>(view.reduceTiles('max', x, [2, 2]));
  exactly<Float32Array>(await device.matmulView(turned, x, view, x, { signal }));
  exactly<number>(await device.tiledSum2d(x, 3, 4));
  exactly<Partials>(await device.tiledReducePartial('min', x, 3, 4));

  exactly<Tuning[]>(await device.tune([['matmul', 6, 6, 2, 3, 2]], { signal }));
  exactly<Verification>(await device.verify({ onFault: 'fail', signal }));
  exactly<Policy>(device.info.policy);

  using op = new CustomOp({ name: 'twice', inputs: ['x'], wgsl: '2 * x', function: (x) => 2 * x });
  using batch = device.batch();
  const id = batch.customElementwise(op, [batch.upload(x)]);
  exactly<typeof id>(batch.customElementwise(op, [id], []));
}

export function wrong(device: GpuDevice, x: Float32Array): void {
  // @ts-expect-error there is no such format
  void device.matmulCache().insert('layer', x, { k: 2, n: 3, format: 'q5_k' });
  // @ts-expect-error blocks are of one of two formats
  void device.matmulCache().insertBlocks('layer', new Uint8Array(34), { k: 32, n: 1, format: 'f16' });
  // @ts-expect-error and of which one must be said
  void device.matmulCache().insertBlocks('layer', new Uint8Array(34), { k: 32, n: 1 });
  // @ts-expect-error there is no such reduction
  void device.tiledReduce2d('mean', x, 3, 4);
  // @ts-expect-error an operation is a list
  void device.tune(['relu']);
  // @ts-expect-error there is no such choice
  void device.verify({ onFault: 'off' });
  // @ts-expect-error a function is missing
  new CustomOp({ name: 'twice', inputs: ['x'], wgsl: '2 * x' });
}
