// A blur and an unsharp mask of the planes of an image.

import type { GpuDevice, Tensor } from 'relampago';

export interface Settings {
  /** The standard deviation of the blur, in pixels. */
  readonly radius: number;
  /** How much of what the blur takes away is added. */
  readonly amount: number;
}

/** The planes of an image as images of one channel. */
export const planesOf = (device: GpuDevice, image: ImageData): Tensor =>
  device.fromImage(image, { layout: 'planes' }).unsqueeze(1);

/** Weights of a Gaussian, whose sum is 1. */
function gaussian(radius: number): number[] {
  const reach = Math.ceil(3 * radius);
  const weights = Array.from({ length: 2 * reach + 1 }, (_, i) => Math.exp(-((i - reach) ** 2) / (2 * radius ** 2)));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

/** Blurs along columns, and then along rows. */
function blurred(device: GpuDevice, planes: Tensor, radius: number): Tensor {
  const weights = device.tensor(gaussian(radius));
  const options = { padding: { mode: 'edge' } } as const;
  return planes
    .conv2d(weights.reshape([1, 1, -1, 1]), options)
    .conv2d(weights.reshape([1, 1, 1, -1]), options);
}

/** The sharpened image. */
export async function sharpened(device: GpuDevice, planes: Tensor, { radius, amount }: Settings): Promise<ImageData> {
  const details = planes.sub(blurred(device, planes, radius));
  return planes.add(details.mul(amount)).squeeze(1).toImageData({ layout: 'planes' });
}
