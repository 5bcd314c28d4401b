// k-means by tensors.

import type { GpuDevice, Tensor } from 'relampago';

export interface Clusters {
  /** The index of each point's nearest centre. */
  readonly labels: Tensor<'u32'>;
  readonly centres: Tensor;
}

export type Step = (points: Tensor, centres: Tensor) => Promise<Clusters>;

/** Returns a step of k-means, which is compiled once for each structure of shapes. */
export const stepOf = (device: GpuDevice, count: number): Step =>
  device.jit((points: Tensor, centres: Tensor): Clusters => {
    // |point − centre|² / 2 less what all centres have in common.
    const halfNorms = centres.square().sum(1).mul(0.5);
    const labels = points.matmul(centres.transpose()).sub(halfNorms).argmax(1);
    const members = labels.oneHot(count);
    const sizes = members.sum(0).unsqueeze(1);
    const means = members.transpose().matmul(points).div(sizes);
    // A centre without points stays where it is.
    return { labels, centres: sizes.where(means, centres) };
  });

/** Points around some places of the unit square, the same each time. */
export function points(device: GpuDevice, count: number, places: number): Promise<Tensor> {
  const middles = device.random.uniform([places, 1, 2], { seed: 3, min: 0.1, max: 0.9 });
  const spread = device.random.normal([places, count / places, 2], { seed: 4, deviation: 0.04 });
  return middles.add(spread).reshape([count, 2]).run();
}
