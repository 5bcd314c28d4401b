// A perceptron with one hidden layer, whose weights a cache holds in some format.

import type { GpuDevice, GpuMatmulCache, Tensor, WeightFormat } from 'relampago';

export const [INPUTS, HIDDEN, CLASSES] = [256, 512, 10];

const LAYERS = [
  { name: 'hidden', k: INPUTS, n: HIDDEN },
  { name: 'output', k: HIDDEN, n: CLASSES },
] as const;

/** Bits of a weight: blocks of 32 have a scale of 16 bits. */
export const BITS: Record<WeightFormat, number> = { f32: 32, f16: 16, q8_0: 8.5, q4_0: 4.5 };

export const bytesOf = (format: WeightFormat): number =>
  LAYERS.reduce((sum, { k, n }) => sum + (k * n * BITS[format]) / 8, 0);

/** Weights of all layers, the same each time. */
export const weightsOf = (device: GpuDevice): Promise<Float32Array[]> =>
  device.read(LAYERS.map(({ k, n }, layer) => device.random.normal([k, n], { seed: layer, deviation: Math.sqrt(2 / k) })));

export class Perceptron {
  readonly #device: GpuDevice;
  readonly #cache: GpuMatmulCache;

  private constructor(device: GpuDevice, cache: GpuMatmulCache) {
    this.#device = device;
    this.#cache = cache;
  }

  static async create(device: GpuDevice, weights: readonly Float32Array[], format: WeightFormat): Promise<Perceptron> {
    const cache = device.matmulCache();
    for (const [layer, { name, k, n }] of LAYERS.entries()) {
      await cache.insert(name, weights[layer] ?? new Float32Array(k * n), { k, n, format });
    }
    return new Perceptron(device, cache);
  }

  /** The scores of each class for each of `count` inputs. */
  async scores(inputs: Float32Array, count: number): Promise<Tensor> {
    const hidden = await this.#cache.matmulCached('hidden', inputs, count);
    const output = await this.#cache.matmulCached('output', await this.#device.relu(hidden), count);
    return this.#device.tensor(output, [count, CLASSES]);
  }

  dispose(): void {
    this.#cache.dispose();
  }
}
