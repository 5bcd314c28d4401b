import type { AbortOptions, Conv2dOptions, Policy } from '#computing';

/**
 * The shape and options of a convolution layer, which convolves `batch` images of several channels with `filters` filters.
 * The input has `batch × channels × rows × cols` elements, the weights have
 * `filters × channels / groups × kernelRows × kernelCols`.
 */
export interface ConvLayerOptions extends Conv2dOptions {
    /** Channels of the input, a multiple of `groups`. */
    channels: number;
    /** Channels of the result, a multiple of `groups`. */
    filters: number;
    /** The number of images; the default is 1. */
    batch?: number | undefined;
    /** Groups of channels and filters: a filter reads only the channels of its own group. The default is 1. */
    groups?: number | undefined;
    /** The distance in the input between neighbouring rows of the kernel; the default is 1. */
    dilationRows?: number | undefined;
    /** The distance in the input between neighbouring columns of the kernel; the default is 1. */
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
     * The position of the first token if attention is causal: a token sees the positions up to its own, and
     * `causal + tokens` is at most `positions`. By default all tokens see all positions.
     */
    causal?: number | undefined;
    /** The number of positions that a token sees, at least 1, up to its own; causal attention only. By default all. */
    window?: number | undefined;
    /** The bound `c` of scores, a positive number; scores become `c * tanh(score / c)`. By default there is none. */
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
    /** Whether a pair has neighbouring elements. By default it has one element of each half of the rotated elements. */
    interleaved?: boolean | undefined;
    /** The base of the frequencies, at least 1; the default is 10,000. */
    base?: number | undefined;
    /** The position of the first token; the default is 0. `first + tokens` is at most 2²⁴. */
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
    /** The size of the axis: at least 1, except for sums, and at most 2²⁴ for indices. */
    len: number;
    /** The product of the sizes of the axes after; the default is 1. */
    inner?: number | undefined;
}

/** An operation by its name, and its arguments with an array's length in place of each array. */
export type TuneOperation = readonly [name: string, ...args: unknown[]];

/** The times of the kernels that can compute an operation, the fastest first. */
export interface Tuning {
    readonly operation: TuneOperation;
    readonly times: readonly { readonly kernel: string; readonly seconds: number }[];
}

/** Whether a device multiplies matrices in f16, or why it does not. */
export type HalfPrecision =
    | 'used'
    | 'not-requested'
    | 'no-gpu'
    /** The adapter has no 16 × 16 f16 matrices with `f32` accumulators, or no f16 in shaders. */
    | 'no-cooperative-matrices'
    /** The adapter's subgroups do not have the 32 invocations that the kernel needs. */
    | 'subgroup-size'
    /** The adapter's workgroups have too little memory or too few invocations for the kernel. */
    | 'workgroup-limits'
    /** `verify` found that this GPU's results in f16 are wrong. */
    | 'wrong-results';

/** A class of operations: a threshold of the policy holds for all of them. */
export type OperationClass = keyof Policy;

/** The options of `verify`. */
export interface VerifyOptions extends AbortOptions {
    /**
     * The answer to wrong results of the GPU: `'turn-off'` (the default) turns the kernels off, `'fail'` rejects with code
     * `WRONG_RESULTS` and turns nothing off.
     */
    onFault?: 'turn-off' | 'fail' | undefined;
}

/** An operation that `verify` checked. */
export interface VerifiedCase {
    readonly operation: string;
    readonly class: OperationClass;
    /** The names of the kernels on the GPU. */
    readonly kernels: readonly string[];
    /**
     * The largest difference from the result on SIMD, as a part of the largest value; for sums of products, of the largest sum
     * of their absolute values. Infinite if the browser refused a kernel.
     */
    readonly error: number;
    /** The largest error that the stated accuracies allow. */
    readonly bound: number;
    readonly passed: boolean;
}

/** Kernels that `verify` turned off. */
export interface TurnedOff {
    /** `'f16'` if kernels in `f32` took over, otherwise the class of operations that runs on SIMD. */
    readonly what: 'f16' | OperationClass;
    readonly reason: string;
}

/** The report of `verify`. */
export interface Verification {
    /** The operations that were checked, before anything was turned off; none on SIMD. */
    readonly cases: readonly VerifiedCase[];
    /** The kernels that this check turned off. */
    readonly turnedOff: readonly TurnedOff[];
}

declare module '#computing' {
    interface DeviceOptions {
        /**
         * Whether the GPU multiplies matrices in f16, if the browser offers subgroup matrices; false by default. Both
         * operands are rounded to the nearest f16 (to ±∞ from 65,520 on), and sums are in `f32`. Matmuls with a vector,
         * matmuls that need too large a buffer when their sides are filled up to multiples of 128, convolutions, and
         * operations on SIMD stay in `f32`. So does everything if `info.halfPrecision` is not `'used'`. Chromium offers
         * these matrices only with `--enable-unsafe-webgpu`.
         */
        halfPrecision?: boolean | undefined;
    }
    interface DeviceInfo {
        readonly halfPrecision: HalfPrecision;
        /** The thresholds from which single operations run on the GPU. */
        readonly policy: Policy;
        /** Whether the thresholds were given as an option. */
        readonly policySource: 'default' | 'given';
        /** The kernels that `verify` turned off. */
        readonly turnedOff: readonly TurnedOff[];
    }
    namespace GpuDevice {
        /** The same as `GpuDevice.create`. */
        function newAsync(options?: DeviceOptions): Promise<GpuDevice>;
    }
    interface GpuDevice {
        /** Returns the sum of a `rows × cols` matrix, which is computed tile by tile; 0 for an empty matrix. */
        tiledSum2d(values: Float32Array, rows: number, cols: number, abort?: AbortOptions): Promise<number>;
        /** Returns the largest element of a `rows × cols` matrix: NaN if it has one, −∞ for an empty matrix. */
        tiledMax2d(values: Float32Array, rows: number, cols: number, abort?: AbortOptions): Promise<number>;
        /** Returns the smallest element of a `rows × cols` matrix: NaN if it has one, ∞ for an empty matrix. */
        tiledMin2d(values: Float32Array, rows: number, cols: number, abort?: AbortOptions): Promise<number>;
        /**
         * Measures which of the GPU's kernels is the fastest for each operation, and returns the times. From then on the
         * fastest kernel runs all operations of the same shape: on this device, and on later devices with the same adapter
         * and version of this package, also after the page is loaded again. Only matmuls, softmaxes and norms have a
         * choice of kernels; the result has no entry for other operations or for those that run on SIMD.
         *
         * `await device.tune([['matmul', 512 * 256, 256 * 64, 512, 256, 64]])`
         */
        tune(operations: readonly TuneOperation[], abort?: AbortOptions): Promise<Tuning[]>;
        /**
         * Runs some twenty operations on the GPU and on SIMD, and compares the results within the stated accuracies. The inputs
         * show known silent faults of GPUs and drivers. What fails is turned off: matmuls in f16 are replaced by `f32`, and if
         * an operation still fails, all of its class run on SIMD. `info.turnedOff` has the reasons. Programs that were compiled
         * before reject with `WRONG_RESULTS` if an operation of theirs is of such a class.
         */
        verify(options?: VerifyOptions): Promise<Verification>;
    }
}
