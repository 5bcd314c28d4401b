// Compiled, never run: the types of tensors, as `tsc --strict` sees them.

import init, {
  GpuDevice, Tensor, type DType, type NestedArray,
} from 'relampago';
import { adam, clipByGlobalNorm, sgd, type Optimizer, type OptimizerState } from 'relampago/train';

type IsAny<T> = 0 extends 1 & T ? true : false;
function exactly<T>(_value: IsAny<T> extends true ? never : T): void {}

export async function everything(signal: AbortSignal, points: Float32Array): Promise<void> {
  await init();
  using device = await GpuDevice.create();
  using x = device.tensor(points, [100, 2]);
  const nested = device.tensor([[1, 2], [3, 4]]);
  using buffer = await device.upload(points);
  const all: Tensor<DType>[] = [
    device.zeros([2, 3]), device.ones([2]), device.full([2, 3], 0.5), device.tensor(1), device.tensor(buffer, [100, 2]),
    x.relu(), x.leakyRelu(0.1), x.clip(0, 1), x.mul(2), x.add(x).sub(nested).div(3), x.greater(0).where(x, 0),
    x.sum(), x.sum(0), x.mean([0, 1], { keepDims: true }), x.max({ keepDims: true }), x.argmax(1), x.any().not(),
    x.softmax(), x.logSoftmax(0), x.layerNorm(nested, nested, { epsilon: 0.001 }), x.rmsNorm(nested),
    x.matmul(nested.transpose()), x.reshape([2, -1]), x.permute([1, 0]).flatten().squeeze().unsqueeze(0),
    x.slice([0, [1, null, 2], null]), x.concat([x], 1), Tensor.stack([x, x]), x.gather([0, 1]), x.gather(new Float32Array([0, 1])), x.oneHot(3),
    x.conv2d(nested, { stride: 2, padding: { mode: 'edge', size: [1, 1] }, groups: 2 }), x.topK(2).indices,
  ];
  exactly<number[]>(x.shape);
  exactly<Float32Array<ArrayBuffer>>(await x.data({ signal }));
  exactly<number>(await x.sum().item());
  exactly<NestedArray>(await x.array());
  exactly<Tensor>(await x.run());
  const [first, second] = await device.read([x, nested]);
  exactly<Float32Array[]>([first, second]);
  exactly<Tensor<DType>[]>(await device.run(all));
  const { centres } = await device.scope(async () => ({ centres: await x.mean(0).run() }));
  exactly<Tensor>(centres);
  exactly<number>(device.tensors.planned);
}

/** Whether two types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_same: Same<A, B>): void => {};

export async function training(device: GpuDevice, x: Tensor): Promise<void> {
  const parameters = { w: x, layers: [x, x] };
  const loss = (own: { w: Tensor; layers: Tensor[] }, scale: number): Tensor => own.w.mul(own.layers[0] ?? own.w).mul(scale).mean();
  const { value, gradients } = device.valueAndGradients(loss)(parameters, 2);
  exactly<Tensor>(value);
  exactly<Tensor[]>(gradients.layers);
  exactly<Tensor>(device.gradients(loss)(parameters, 2).w);
  exactly<Tensor>(x.sum().gradients(x));
  exactly<{ a: Tensor }>(x.sum().gradients({ a: x }));
  exactly<Tensor>(x.stopGradient().crossEntropy(Uint32Array.of(1)));
  const rule: Optimizer = adam({ b1: 0.8 });
  const step = device.jit((own: typeof parameters, state: OptimizerState<typeof parameters>, options: { rate: Tensor }) =>
    rule.step(own, clipByGlobalNorm(gradients, 1), state, options.rate));
  const next = await step(parameters, rule.init(parameters), { rate: 0.1 });
  exactly<Tensor[]>(next.parameters.layers);
  // @ts-expect-error: an array of numbers is no argument
  await step({ w: x, layers: [1, 2] }, next.state, { rate: 0.1 });
  // @ts-expect-error: numbers have no gradients
  x.sum().gradients(5);
  // @ts-expect-error: optax has `b1`
  sgd({ b1: 0.9 });
}

export async function types(device: GpuDevice, x: Tensor): Promise<void> {
  same<typeof x.dtype, 'f32'>(true);
  const labels = x.argmax(1);
  same<typeof labels, Tensor<'u32'>>(true);
  const read = await device.read([x, labels, x.greater(0)]);
  same<typeof read, [Float32Array<ArrayBuffer>, Uint32Array<ArrayBuffer>, Uint8Array<ArrayBuffer>]>(true);
  const again = device.tensor(read[1]);
  same<typeof again, Tensor<'u32'>>(true);
  const any = await x.any().item();
  same<typeof any, boolean>(true);
  const nested = await x.equal(1).reshape([2, 2]).array();
  same<typeof nested, NestedArray<boolean>>(true);
  const [joined, mixed] = [Tensor.stack([labels, labels]), Tensor.concat([labels, x])];
  same<typeof joined, Tensor<'u32'>>(true);
  same<typeof mixed, Tensor>(true);
  interface Moments {
    readonly mean: Tensor;
    readonly parts: readonly [Tensor<'u32'>, { largest: Tensor }];
  }
  const moments = device.jit((a: Tensor): Moments => ({ mean: a.mean(), parts: [a.argmax(), { largest: a.max() }] }));
  same<ReturnType<typeof moments>, Promise<Moments>>(true);
  const step = device.jit((a: Tensor, b: Tensor) => ({ sum: a.add(b), pair: [a.argmax(), b] as const }));
  same<Parameters<typeof step>, [a: Tensor | number, b: Tensor | number]>(true);
  const { sum, pair: [index] } = await step(x, 2);
  same<typeof sum, Tensor>(true);
  same<typeof index, Tensor<'u32'>>(true);
  const image: ImageData = await device.fromImage({ data: new Uint8Array(4), width: 1, height: 1 }).toImageData();
  device.fromImage(image, { layout: 'planes' }).add(device.random.normal([4, 1, 1], { seed: 1, deviation: 0.1 }));
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
  // @ts-expect-error the option is keepDims
  x.sum(0, { keepdims: true });
  // @ts-expect-error what is compiled is not async
  device.jit(async (a: Tensor) => a);
  // @ts-expect-error it returns tensors only
  device.jit((a: Tensor) => ({ a, size: 3 }));
  // @ts-expect-error it has one parameter
  device.jit((a: Tensor) => a)(x, x);
  // @ts-expect-error there is no such layout
  x.toImageData({ layout: 'rgb' });
}
