import type { AbortOptions } from './relampago.js';

export {
    type BlockOptions,
    type CachedWeights,
    type CustomOpDefinition,
    type Partials,
    type Reduction,
    type Shape,
    type ViewOptions,
    type WeightFormat,
    type WeightOptions,
    CustomOp,
    GpuMatmulCache,
    TensorView,
} from './relampago.js';

/** An operation by its name, and its arguments with an array's length in place of each array. */
export type TuneOperation = readonly [name: string, ...args: unknown[]];

/** How long each kernel that could compute an operation took, the fastest first. */
export interface Tuning {
    readonly operation: TuneOperation;
    readonly times: readonly { readonly kernel: string; readonly seconds: number }[];
}

declare module './relampago.js' {
    interface GpuDevice {
        /** The sum of a `rows × cols` matrix, added up tile by tile. */
        tiledSum2d(values: Float32Array, rows: number, cols: number, abort?: AbortOptions): Promise<number>;
        /** The largest value of a `rows × cols` matrix; −∞ of none, NaN if there is one. */
        tiledMax2d(values: Float32Array, rows: number, cols: number, abort?: AbortOptions): Promise<number>;
        /** The smallest value of a `rows × cols` matrix; ∞ of none, NaN if there is one. */
        tiledMin2d(values: Float32Array, rows: number, cols: number, abort?: AbortOptions): Promise<number>;
        /**
         * Measures which of the GPU's kernels is the fastest for operations to come, and has it compute
         * all of the same shape from then on: on this device, and on those created later with the same
         * adapter and version of this package, also after the page was loaded again. There is a choice for products,
         * softmaxes and norms; nothing is told of other operations, nor of what SIMD will compute.
         *
         * `await device.tune([['matmul', 512 * 256, 256 * 64, 512, 256, 64]])`
         */
        tune(operations: readonly TuneOperation[], abort?: AbortOptions): Promise<Tuning[]>;
    }
}
