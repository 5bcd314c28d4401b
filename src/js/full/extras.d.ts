import type { AbortOptions } from './relampago.js';

export {
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

declare module './relampago.js' {
    interface GpuDevice {
        /** The sum of a `rows × cols` matrix, added up tile by tile. */
        tiledSum2d(values: Float32Array, rows: number, cols: number, abort?: AbortOptions): Promise<number>;
        /** The largest value of a `rows × cols` matrix; −∞ of none, NaN if there is one. */
        tiledMax2d(values: Float32Array, rows: number, cols: number, abort?: AbortOptions): Promise<number>;
        /** The smallest value of a `rows × cols` matrix; ∞ of none, NaN if there is one. */
        tiledMin2d(values: Float32Array, rows: number, cols: number, abort?: AbortOptions): Promise<number>;
    }
}
