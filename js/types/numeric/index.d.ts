import type { Axes, DType, Operand, ReduceOptions, Tensor, TensorValues } from '../npm/index.js';

export * from '../common/base.js';
export { default } from '../common/base.js';

export interface PadOptions {
    /**
     * The added elements: one number, which is the default, copies of the outermost elements, or a reflection about
     * these.
     */
    mode?: 'constant' | 'edge' | 'reflect' | undefined;
    /** The number of the mode `'constant'`; the default is 0. */
    value?: number | undefined;
}

export interface VectorNormOptions extends ReduceOptions {
    /** The power; the default is 2. Infinity gives the largest absolute value, 0 the number of elements other than 0. */
    p?: number | undefined;
}

export interface BincountOptions {
    /** Numbers that are added in place of 1, in the shape of the tensor. */
    weights?: Tensor<DType> | undefined;
}

export interface DropoutOptions {
    /** A whole number that determines which elements are dropped; by default another one each time. */
    seed?: number | undefined;
}

export interface ResizeOptions {
    /** The interpolation; the default is `'bilinear'`. */
    mode?: 'nearest' | 'bilinear' | 'bicubic' | undefined;
    /** Whether smaller results are free of aliases; the default is `false`. Not for `'nearest'`. */
    antialias?: boolean | undefined;
}

export interface PoolOptions {
    /** Elements between windows, of each axis or of all; by default windows lie side by side. */
    stride?: number | readonly number[] | undefined;
    /** Elements before and after each axis or all axes, at most half a window; the default is 0. */
    padding?: number | readonly number[] | undefined;
    /** Whether the last window may reach beyond the end of an axis, if it starts before; the default is `false`. */
    ceil?: boolean | undefined;
}

export interface AvgPoolOptions extends PoolOptions {
    /** Whether the zeros of the padding count; the default is `true`. */
    countPadding?: boolean | undefined;
}

declare module '../npm/tensor/tensor.js' {
    interface Tensor<D extends DType = 'f32'> {
        /** Zeros of this shape. */
        zerosLike(): Tensor;
        /** Ones of this shape. */
        onesLike(): Tensor;
        /** A tensor of this shape whose elements are all `value`. */
        fullLike(value: number): Tensor;

        /**
         * Adds elements before and after each axis, by their numbers for each. Throws with code `INVALID_ARGUMENT` for a
         * reflection of more elements than the axis has beside the one at the end.
         */
        pad(sides: readonly (readonly [before: number, after: number])[], options?: PadOptions): Tensor<D>;
        /**
         * Repeats the whole tensor along axes. Counts belong to the last axes; more counts than axes add axes at the
         * front.
         */
        tile(counts: number | readonly number[]): Tensor<D>;
        /** Repeats each element of an axis `count` times in a row. */
        repeat(count: number, axis: number): Tensor<D>;
        /** Moves the elements of an axis by `shift`; those that leave it at one end come back at the other. */
        roll(shift: number, axis: number): Tensor<D>;
        /** Reverses the order of the elements along axes, all of them by default. */
        flip(axes?: Axes): Tensor<D>;
        /**
         * Divides an axis, the first by default: into a number of equal parts, or at indices in ascending order, which give
         * one part more than there are indices.
         */
        split(parts: number | readonly number[], axis?: number): Tensor<D>[];

        /** The product of elements along axes; 1 of none. */
        prod(axes?: Axes, options?: ReduceOptions): Tensor;
        prod(options: ReduceOptions): Tensor;
        /** The norm of the vectors along axes: (Σ |x|ᵖ)^(1/p). */
        norm(axes?: Axes, options?: VectorNormOptions): Tensor;
        norm(options: VectorNormOptions): Tensor;
        /** The sums of the elements of an axis up to each one. */
        cumsum(axis: number): Tensor;
        /** The products of the elements of an axis up to each one. */
        cumprod(axis: number): Tensor;
        /** The elements of an axis, the last by default, in ascending order; NaN last. `flip` makes the order descending. */
        sort(axis?: number): Tensor<D>;
        /** The indices of the elements of an axis in ascending order. Equal elements stay in their order. */
        argsort(axis?: number): Tensor<'u32'>;

        /** The remainder of a division whose quotient is rounded down, with the sign of `b`: NumPy's `mod`. */
        modulo(b: Operand): Tensor;
        /** The remainder of a division whose quotient is rounded towards 0, with the sign of `a`: C's `fmod`. */
        fmod(b: Operand): Tensor;
        /** The angle of the vector `(x, y)` from the first axis on, from −π to π, where this tensor is `y`. */
        atan2(x: Operand): Tensor;
        /** log(eᵃ + eᵇ), without overflow. */
        logaddexp(b: Operand): Tensor;
        /** √(a² + b²), without overflow. */
        hypot(b: Operand): Tensor;

        /**
         * How often each whole number below `count` is among the elements, or the sums of their weights. Another element
         * is an error where the host has it, and elsewhere not counted.
         */
        bincount(count: number, options?: BincountOptions): Tensor;
        /**
         * The numbers of elements in `bins` intervals of equal length from `start` to `end`. The last interval contains
         * `end`; elements outside, and NaN, are not counted.
         */
        histogram(bins: number, start: number, end: number): Tensor;
        /**
         * Adds elements of `source` at indices of an axis, the first by default; several with one index are all added.
         * `source` broadcasts to the shape of `gather(indices, axis)`. An index beyond the axis is an error where the host
         * has it; elsewhere its elements are not added.
         */
        scatterAdd(indices: Tensor<DType> | TensorValues | Uint32Array, source: Operand, axis?: number): Tensor;
        /**
         * Zeros in place of a share `rate` of the elements, drawn at random, and the others divided by 1 − `rate`. A function
         * that `device.jit` records draws once: give such a function the random numbers as an argument.
         */
        dropout(rate: number, options?: DropoutOptions): Tensor;

        /**
         * Resizes the last axes to these lengths, as PyTorch's `interpolate` with `align_corners=False`: the centre of
         * element i of n is at (i + ½) / n of the axis.
         */
        resize(lengths: number | readonly number[], options?: ResizeOptions): Tensor;
        /** The largest element of each window along the last axes, which has a length for each of these. */
        maxPool(window: readonly number[], options?: PoolOptions): Tensor;
        /** The mean of each window along the last axes, which has a length for each of these. */
        avgPool(window: readonly number[], options?: AvgPoolOptions): Tensor;

        /**
         * The discrete Fourier transform of complex numbers, of any length: Σ xⱼ · e^(−2πi·jk/n). The last axis has the
         * real and the imaginary part; `axis` counts the others, of which it is the last by default.
         */
        fft(axis?: number): Tensor;
        /** The inverse of `fft`. */
        ifft(axis?: number): Tensor;
        /** The first ⌊n/2⌋ + 1 elements of the transform of n real numbers, which have the others as conjugates. */
        rfft(axis?: number): Tensor;
        /** The `length` real numbers whose transform by `rfft` this is. */
        irfft(length: number, axis?: number): Tensor;
        /**
         * The spectra of windows of the last axis, `hop` elements apart: shape `[…, frequencies, windows, 2]`. The signal is
         * reflected at both ends; `window` is a vector of weights.
         */
        stft(window: Tensor<DType>, hop: number): Tensor;
        /** The signal of `length` elements whose windows have these spectra: the inverse of `stft`. */
        istft(window: Tensor<DType>, hop: number, length: number): Tensor;
    }

    namespace Tensor {
        /**
         * Sums products of tensors whose axes have labels, as NumPy's `einsum`: `'ij,jk->ik'` is a matmul. `...` stands for all
         * axes without labels.
         */
        function einsum(labels: string, tensors: readonly Tensor<DType>[]): Tensor;
    }
}

declare module '#computing' {
    interface GpuDevice {
        /** The whole numbers from 0 to below `end`. */
        arange(end: number): Tensor;
        /** The numbers from `start` to below `end` that are `step` apart, 1 by default. */
        arange(start: number, end: number, step?: number): Tensor;
        /** `count` numbers from `start` to `end`, both included, at equal distances. */
        linspace(start: number, end: number, count: number): Tensor;
        /** A matrix with ones on its main diagonal and zeros elsewhere, as many columns as rows by default. */
        eye(rows: number, cols?: number): Tensor;
    }
}
