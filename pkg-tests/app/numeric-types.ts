// The types of functions of `relampago/numeric`, checked as strictly as TypeScript can.

import { Tensor, type DType, type GpuDevice } from 'relampago';
import init, { type AvgPoolOptions, type PadOptions } from 'relampago/numeric';

declare const device: GpuDevice;

export async function uses(): Promise<void> {
    await init();
    const x: Tensor = device.arange(6).add(device.arange(0, 6, 1)).add(device.linspace(0, 1, 6));
    const square: Tensor = device.eye(3).add(device.eye(3, 3));
    const indices: Tensor<'u32'> = x.argsort().roll(1, 0).flip();
    const truth: Tensor<'bool'> = x.greater(1).tile(2).repeat(2, 0).pad([[1, 2]], { mode: 'edge' });
    const parts: Tensor<'u32'>[] = indices.split(2).concat(indices.split([1, 2], -1));
    const padding: PadOptions = { value: 3 };
    const windows: AvgPoolOptions = { stride: [1, 2], padding: 1, countPadding: false };
    const image: Tensor = square.pad([[1, 1], [0, 0]], padding).maxPool([2, 2]).avgPool([1, 1], windows);
    const resized: Tensor = image.resize([4, 4], { mode: 'bicubic', antialias: true });
    const reduced: Tensor = x.prod({ keepDims: true }).add(x.norm(0, { p: Infinity })).add(x.norm({ p: 1 }));
    const spectrum: Tensor = x.rfft().irfft(6).stft(device.ones([2]), 1).istft(device.ones([2]), 1, 6);
    const sums: Tensor = Tensor.einsum('i,i->', [x, truth]).add(x.scatterAdd([0, 1], 1).scatterAdd(indices, x));
    const counts: Tensor = indices.bincount(6, { weights: x }).add(x.histogram(6, 0, 1)).dropout(0.5, { seed: 1 });
    const angles: Tensor = x.atan2(1).hypot(x).logaddexp(0).modulo(2).fmod(x);
    const all: Tensor<DType>[] = [...parts, resized, reduced, spectrum, sums, counts, angles, x.sort().cumsum(0).cumprod(0)];
    await device.read(all);
}

export function mistakes(x: Tensor): void {
    // @ts-expect-error An axis is needed.
    x.cumsum();
    // @ts-expect-error There is no such mode.
    x.pad([[1, 1]], { mode: 'wrap' });
    // @ts-expect-error Each axis has two sides.
    x.pad([1, 1]);
    // @ts-expect-error A window has a length for each axis.
    x.maxPool(2);
    // @ts-expect-error The indices are whole numbers.
    const order: Tensor = x.argsort();
    // @ts-expect-error Tensors are in an array.
    Tensor.einsum('i->', x);
    void order;
}
