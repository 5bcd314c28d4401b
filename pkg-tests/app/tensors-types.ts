// Compiled, never run: the types of tensors, as `tsc --strict` sees them.

import init, { GpuDevice, Tensor, type NestedArray } from 'relampago';

type IsAny<T> = 0 extends 1 & T ? true : false;
function exactly<T>(_value: IsAny<T> extends true ? never : T): void {}

export async function everything(signal: AbortSignal, points: Float32Array): Promise<void> {
  await init();
  using device = await GpuDevice.create();
  using x = device.tensor(points, [100, 2]);
  const nested = device.tensor([[1, 2], [3, 4]]);
  using buffer = await device.upload(points);
  const all: Tensor[] = [
    device.zeros([2, 3]), device.ones([2]), device.full([2, 3], 0.5), device.tensor(1), device.tensor(buffer, [100, 2]),
    x.relu(), x.leakyRelu(0.1), x.clip(0, 1), x.mul(2), x.add(x).sub(nested).div(3), x.greater(0).where(x, 0),
    x.sum(), x.sum(0), x.mean([0, 1], { keepDims: true }), x.max({ keepDims: true }), x.argmax(1), x.any().not(),
    x.softmax(), x.logSoftmax(0), x.layerNorm(nested, nested, { epsilon: 0.001 }), x.rmsNorm(nested),
    x.matmul(nested.transpose()), x.reshape([2, -1]), x.permute([1, 0]).flatten().squeeze().unsqueeze(0),
    x.slice([0, [1, null, 2], null]), x.concat([x], 1), Tensor.stack([x, x]), x.gather([0, 1]), x.oneHot(3),
    x.conv2d(nested, { stride: 2, padding: { mode: 'edge', size: [1, 1] }, groups: 2 }), x.topK(2).indices,
  ];
  exactly<number[]>(x.shape);
  exactly<Float32Array<ArrayBuffer>>(await x.data({ signal }));
  exactly<number>(await x.sum().item());
  exactly<NestedArray>(await x.array());
  exactly<Tensor>(await x.run());
  const [first, second] = await device.read([x, nested]);
  exactly<Float32Array[]>([first, second]);
  exactly<Tensor[]>(await device.run(all));
  const { centres } = await device.scope(async () => ({ centres: await x.mean(0).run() }));
  exactly<Tensor>(centres);
  exactly<number>(device.tensors.planned);
}

export function wrong(device: GpuDevice, x: Tensor): void {
  // @ts-expect-error a tensor comes from a device
  new Tensor();
  // @ts-expect-error await it first
  x.add(x.data());
  // @ts-expect-error arrays are made tensors first
  x.matmul([1, 2]);
  // @ts-expect-error there is no such mode
  x.conv2d(x, { padding: { mode: 'wrap' } });
  // @ts-expect-error an index is along one axis
  x.argmax([0, 1]);
  // @ts-expect-error a shape is a list
  device.zeros(3);
}
