import type { AbortOptions, Conv2dOptions } from './relampago.js';

/**
 * Shape and options of a convolution layer: each of `filters` sums over windows of several channels, of each of
 * `batch` images. Values are `batch × channels × rows × cols`, weights
 * `filters × channels / groups × kernelRows × kernelCols`.
 */
export interface ConvLayerOptions extends Conv2dOptions {
    /** Channels of the input, a multiple of the groups. */
    channels: number;
    /** Channels of the result, a multiple of the groups. */
    filters: number;
    /** Images; 1 unless given. */
    batch?: number | undefined;
    /** Groups of channels and filters, which see their own only; 1 unless given. */
    groups?: number | undefined;
    /** Rows from a row of the kernel to the next one's place; 1 unless given. */
    dilationRows?: number | undefined;
    /** Columns from a column of the kernel to the next one's place; 1 unless given. */
    dilationCols?: number | undefined;
}

/**
 * The shape and options of scaled dot-product attention. Queries and the result have `tokens × heads × headLen`
 * elements, keys and values `positions × kvHeads × headLen`.
 */
export interface AttentionOptions {
    tokens: number;
    /** A multiple of `kvHeads`. */
    heads: number;
    /** Elements of a head, at most 256. */
    headLen: number;
    /** Heads of keys and values; the default is `heads`. */
    kvHeads?: number | undefined;
    /** Positions that have keys and values; the default is `tokens`. */
    positions?: number | undefined;
    /**
     * The position of the first token if attention is causal: a token sees the positions up to its own. By default all
     * tokens see all positions.
     */
    causal?: number | undefined;
    /** Positions that a token sees, up to its own; causal attention only. By default there is no bound. */
    window?: number | undefined;
    /** The bound `c` of scores, which become `c * tanh(score / c)`. By default there is none. */
    softCap?: number | undefined;
    /** The factor of scores; the default is `1 / √headLen`. */
    scale?: number | undefined;
}

/**
 * The shape and options of a rotary position embedding of `tokens × heads × headLen` elements. Pair `i` of a head's
 * first `rotated` elements is rotated by the position times `base ** (-2 * i / rotated)`.
 */
export interface RopeOptions {
    tokens: number;
    heads: number;
    headLen: number;
    /** Elements of a head that are rotated, an even number; the default is all. The others are copied. */
    rotated?: number | undefined;
    /** Whether pairs are neighbours. By default a pair has an element of each half of the rotated ones. */
    interleaved?: boolean | undefined;
    /** The base of the frequencies; the default is 10,000. */
    base?: number | undefined;
    /** The position of the first token; the default is 0. */
    first?: number | undefined;
    /** Divisors of the frequencies, one for each pair. */
    factors?: Float32Array | undefined;
}

/**
 * A strided view of `x` whose elements become a row-major result: `y[i0, i1, …] = x[offset + Σ iₖ * strides[k]]`. A
 * stride of 0 repeats elements, a negative one reverses an axis.
 */
export interface RearrangeOptions {
    /** The number of elements along each axis of the result, of at most 6 axes. */
    shape: readonly number[];
    /** The distance in `x` between neighbours along each axis. */
    strides: readonly number[];
    /** The index in `x` of the first element of the result; the default is 0. */
    offset?: number | undefined;
}

/** The function of the elements along an axis. Indices are of the first such element, or of the first NaN. */
export type AxisFold = 'sum' | 'mean' | 'max' | 'min' | 'argmax' | 'argmin';

/** A reduction of the middle axis of `outer × len × inner` elements to `outer × inner` ones. */
export interface ReduceAxisOptions {
    fold: AxisFold;
    /** The product of the sizes of the axes before; the default is 1. */
    outer?: number | undefined;
    /** The size of the axis; at least 1 but for sums. */
    len: number;
    /** The product of the sizes of the axes after; the default is 1. */
    inner?: number | undefined;
}

/** An operation by its name, and its arguments with an array's length in place of each array. */
export type TuneOperation = readonly [name: string, ...args: unknown[]];

/** How long each kernel that could compute an operation took, the fastest first. */
export interface Tuning {
    readonly operation: TuneOperation;
    readonly times: readonly { readonly kernel: string; readonly seconds: number }[];
}

/** Whether a device multiplies matrices in binary16, and why not. */
export type HalfPrecision =
    | 'used'
    | 'not-asked'
    | 'no-gpu'
    /** None of 16 × 16 binary16 that add up in `f32`, or no binary16 in shaders. */
    | 'no-cooperative-matrices'
    /** Its subgroups are not 32 invocations wide, which the kernel is written for. */
    | 'subgroup-size'
    /** Its workgroups have less memory, or fewer invocations, than the kernel takes. */
    | 'workgroup-limits';

declare module './relampago.js' {
    interface DeviceOptions {
        /**
         * Multiplies matrices on the GPU in binary16, where the browser offers subgroups' matrices:
         * both operands are rounded to the nearest binary16 (to ±∞ from 65,520 on), products are added
         * up in `f32`. Products of a matrix and a vector, those that no buffer holds once sides are
         * filled up to multiples of 128, convolutions and all that runs on SIMD are not rounded, and
         * nothing is where `info.halfPrecision` is not `'used'`. Chromium offers them with
         * `--enable-unsafe-webgpu` only. `false` unless given.
         */
        halfPrecision?: boolean | undefined;
    }
    interface DeviceInfo {
        readonly halfPrecision: HalfPrecision;
    }
    namespace GpuDevice {
        /** The same as `GpuDevice.create`. */
        function newAsync(options?: DeviceOptions): Promise<GpuDevice>;
    }
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
