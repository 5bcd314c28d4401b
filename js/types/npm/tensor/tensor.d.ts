import type { AbortOptions, DeviceBuffer, GpuDevice } from '#computing';

/**
 * The type of a tensor's elements: `'u32'` for indices, `'bool'` for comparisons and logical operations, and `'f32'`
 * otherwise. Arithmetic gives `'f32'`.
 */
export type DType = 'f32' | 'u32' | 'bool';

/** The array that `data` returns: a byte for each boolean, which is 0 or 1. */
export type DataOf<D extends DType> = {
    f32: Float32Array<ArrayBuffer>;
    u32: Uint32Array<ArrayBuffer>;
    bool: Uint8Array<ArrayBuffer>;
}[D];

/** An element as `item` and `array` return it. */
export type ElementOf<D extends DType> = { f32: number; u32: number; bool: boolean }[D];

/** Elements in arrays of arrays, one level for each axis; an element for a scalar. */
export type NestedArray<Element = number> = Element | NestedArray<Element>[];

/** The sources of a tensor: a number, nested arrays of numbers, or values in row-major order. */
export type TensorValues = number | Float32Array | NestedNumbers;

export type NestedNumbers = readonly (number | Float32Array | NestedNumbers)[];

/**
 * The sources of a tensor: numbers, whole numbers up to 16,777,216, or a buffer on the device, which stays the
 * caller's.
 */
export type TensorSource = TensorValues | Uint8Array | Uint8ClampedArray | Uint32Array | DeviceBuffer;

/** The other operand of a method: a tensor of the same device, or a number. */
export type Operand = Tensor<DType> | number;

/**
 * The part of an axis that a slice has: one index, which removes the axis; a range from `start` to before `end`; or null
 * for the whole axis.
 * Negative indices count from the end. A negative step walks backwards.
 */
export type Range =
    | number
    | null
    | undefined
    | readonly [start?: number | null, end?: number | null, step?: number];

/** One axis or several; all axes by default. Negative ones count from the end. */
export type Axes = number | readonly number[] | null;

export interface ReduceOptions {
    /** Whether reduced axes stay, with the length 1; the default is `false`. */
    keepDims?: boolean | undefined;
}

/** The elements that a convolution adds around images. */
export type PaddingOption =
    | 'valid'
    | 'same'
    | number
    | readonly [rows: number, cols: number]
    | {
          /** The added elements: zeros, copies of the outermost elements, or a reflection about these. */
          mode: 'zeros' | 'edge' | 'reflect';
          /** The numbers of elements that are added to each side; by default the numbers that `'same'` adds. */
          size?: number | readonly [rows: number, cols: number] | undefined;
      };

export interface TensorConv2dOptions {
    /** Elements between windows, of rows and columns or of both; the default is 1. */
    stride?: number | readonly [rows: number, cols: number] | undefined;
    /** The padding; the default is 0. `'same'` gives `length / stride` elements, rounded up. */
    padding?: PaddingOption | undefined;
    /** Elements from one weight to the next one; the default is 1. */
    dilation?: number | readonly [rows: number, cols: number] | undefined;
    /** Groups of channels and filters, which see their own only; the default is 1. */
    groups?: number | undefined;
}

export interface NormOptions {
    /** The axis; the last one by default. */
    axis?: number | undefined;
    /** A number that is added to the variance; the default is 0.00001. */
    epsilon?: number | undefined;
}

/** How the channels of an image lie: side by side for each pixel, or in a plane each. */
export interface ImageLayout {
    /** `'pixels'` for `[height, width, channels]`, which is the default; `'planes'` for `[channels, height, width]`. */
    layout?: 'pixels' | 'planes' | undefined;
}

/** An image: four bytes for each pixel, row by row. */
export interface ImageBytes {
    readonly data: Uint8ClampedArray | Uint8Array;
    readonly width: number;
    readonly height: number;
}

export interface UniformOptions {
    /** A whole number that determines the elements; by default another one each time. */
    seed?: number | undefined;
    /** The least element; the default is 0. */
    min?: number | undefined;
    /** The upper bound, which no element reaches; the default is 1. */
    max?: number | undefined;
}

export interface NormalOptions {
    /** A whole number that determines the elements; by default another one each time. */
    seed?: number | undefined;
    /** The mean; the default is 0. */
    mean?: number | undefined;
    /** The standard deviation; the default is 1. */
    deviation?: number | undefined;
}

/** Random tensors. A seed gives the same elements on every back-end and platform, by the generator Philox4x32-10. */
export interface RandomTensors {
    /** Elements of the uniform distribution from `min` to below `max`. */
    uniform(shape: readonly number[], options?: UniformOptions): Tensor;
    /** Elements of the normal distribution. */
    normal(shape: readonly number[], options?: NormalOptions): Tensor;
}

/** A type that consists of tensors: one, or arrays and objects of tensors. All other types become `never`. */
export type TensorTree<Result> = Result extends Tensor<DType>
    ? Result
    : Result extends PromiseLike<unknown> | ((...values: never) => unknown)
      ? never
      : Result extends object
        ? { readonly [Name in keyof Result]: TensorTree<Result[Name]> }
        : never;

/**
 * An argument in place of a tensor, or of arrays and objects of tensors: a number stands for a tensor without axes, but
 * not in an array.
 */
export type Argument<Parameter> = Parameter extends Tensor<DType>
    ? Parameter | number
    : Parameter extends readonly unknown[]
      ? TensorTree<Parameter>
      : Parameter extends object
        ? { readonly [Name in keyof Parameter]: Argument<Parameter[Name]> }
        : never;

/** The parameters of a function of tensors, as its callers give them. */
export type Arguments<Parameters extends readonly unknown[]> = {
    [Place in keyof Parameters]: Argument<Parameters[Place]>;
};

/**
 * Values with a shape. Methods record a computation, and return or throw at once; `data`, `item`, `array` and
 * `run` compute it. A method throws a `RelampagoError`: with code `SHAPE_MISMATCH` where shapes do not fit,
 * `SHAPE_OVERFLOW` for more than 2²⁹ − 1 elements, `LIMIT_EXCEEDED` for more than 6 axes, `INVALID_ARGUMENT` for a value of
 * the wrong kind, `FOREIGN` for a tensor of another device, and `DISPOSED`. The methods that compute reject with the
 * errors of the device, too, such as `OUT_OF_MEMORY` and `DEVICE_LOST`.
 */
export class Tensor<D extends DType = 'f32'> {
    private constructor();

    /** The type of the elements. */
    readonly dtype: D;
    /** The lengths of the axes; a scalar has none. */
    readonly shape: number[];
    /** The number of elements. */
    readonly size: number;
    /** The number of axes, at most 6. */
    readonly rank: number;
    /** The device that computes it. */
    readonly device: GpuDevice;

    /** Joins tensors of one shape along a new axis, the first by default. */
    static stack(tensors: readonly Tensor<'u32'>[], axis?: number): Tensor<'u32'>;
    static stack(tensors: readonly Tensor<'bool'>[], axis?: number): Tensor<'bool'>;
    static stack(tensors: readonly Tensor<DType>[], axis?: number): Tensor;
    /** Joins tensors along an axis, the first by default. */
    static concat(tensors: readonly Tensor<'u32'>[], axis?: number): Tensor<'u32'>;
    static concat(tensors: readonly Tensor<'bool'>[], axis?: number): Tensor<'bool'>;
    static concat(tensors: readonly Tensor<DType>[], axis?: number): Tensor;

    /** Computes the values, and returns them in row-major order. */
    data(options?: AbortOptions): Promise<DataOf<D>>;
    /** Computes the only element. Rejects with code `SHAPE_MISMATCH` if there are others. */
    item(options?: AbortOptions): Promise<ElementOf<D>>;
    /** Computes the values, and returns them in nested arrays. */
    array(options?: AbortOptions): Promise<NestedArray<ElementOf<D>>>;
    /**
     * Computes an image of elements from 0 to 1, of shape `[height, width]` or `[height, width, channels]` with 1, 3 or 4
     * channels. Returns an `ImageData`, or a plain object of the same properties where the host has no such class.
     */
    toImageData(options?: ImageLayout & AbortOptions): Promise<ImageData>;
    /** Computes the values, which stay on the device, and releases their recorded computation. Returns this tensor. */
    run(options?: AbortOptions): Promise<this>;
    /** The same as `run`. */
    keep(options?: AbortOptions): Promise<this>;
    /** Releases the values on the device. Tensors recorded from them, and not computed yet, cannot run any more. */
    dispose(): void;
    [Symbol.dispose](): void;
    /** Returns the shape as a text. */
    toString(): string;

    /** The sum `a + b`, elementwise. Shapes broadcast as in NumPy, here and in all operations of two tensors. */
    add(b: Operand): Tensor;
    /** 1 where `a ≠ b` or either is NaN, 0 elsewhere. */
    notEqual(b: Operand): Tensor<'bool'>;
    /** 1 where `a > b`, 0 elsewhere; 0 beside NaN. */
    greater(b: Operand): Tensor<'bool'>;
    /** 1 where `a ≥ b`, 0 elsewhere; 0 beside NaN. */
    greaterEqual(b: Operand): Tensor<'bool'>;
    /** 1 where an element is 0, 0 elsewhere. */
    not(): Tensor<'bool'>;
    /** 1 where an element is NaN, 0 elsewhere. */
    isNan(): Tensor<'bool'>;
    /** 1 where an element is neither NaN nor infinite, 0 elsewhere. */
    isFinite(): Tensor<'bool'>;
    /** 1 where both elements are other than 0, 0 elsewhere. */
    and(b: Operand): Tensor<'bool'>;
    /** 1 where an element is other than 0, 0 elsewhere. */
    or(b: Operand): Tensor<'bool'>;
    /** `a` where this tensor is other than 0, `b` elsewhere. */
    where(a: Operand, b: Operand): Tensor;

    /** The sum of elements along axes; 0 of none. */
    sum(axis?: Axes, options?: ReduceOptions): Tensor;
    sum(options: ReduceOptions): Tensor;
    /** The arithmetic mean along axes. */
    mean(axis?: Axes, options?: ReduceOptions): Tensor;
    mean(options: ReduceOptions): Tensor;
    /** The variance along axes: the mean of squared distances from the mean. Of a sample, multiply it by n / (n − 1). */
    variance(axis?: Axes, options?: ReduceOptions): Tensor;
    variance(options: ReduceOptions): Tensor;
    /** The standard deviation along axes: the square root of the variance. */
    std(axis?: Axes, options?: ReduceOptions): Tensor;
    std(options: ReduceOptions): Tensor;
    /** The largest element along axes; NaN where any is NaN. */
    max(axis?: Axes, options?: ReduceOptions): Tensor;
    max(options: ReduceOptions): Tensor;
    /** The smallest element along axes; NaN where any is NaN. */
    min(axis?: Axes, options?: ReduceOptions): Tensor;
    min(options: ReduceOptions): Tensor;
    /** The index of the first largest element along an axis, or of all elements in row-major order. */
    argmax(axis?: number | null, options?: ReduceOptions): Tensor<'u32'>;
    argmax(options: ReduceOptions): Tensor<'u32'>;
    /** The index of the first smallest element along an axis, or of all elements in row-major order. */
    argmin(axis?: number | null, options?: ReduceOptions): Tensor<'u32'>;
    argmin(options: ReduceOptions): Tensor<'u32'>;
    /** 1 where any element along axes is other than 0, 0 elsewhere. */
    any(axis?: Axes, options?: ReduceOptions): Tensor<'bool'>;
    any(options: ReduceOptions): Tensor<'bool'>;
    /** 1 where all elements along axes are other than 0, 0 elsewhere. */
    all(axis?: Axes, options?: ReduceOptions): Tensor<'bool'>;
    all(options: ReduceOptions): Tensor<'bool'>;

    /** The softmax along an axis, the last by default. */
    softmax(axis?: number): Tensor;
    /** The logarithm of the softmax along an axis, the last by default. */
    logSoftmax(axis?: number): Tensor;
    /** Layer normalisation along an axis, whose length `gain` and `bias` have. */
    layerNorm(gain: Tensor<DType>, bias: Tensor<DType>, options?: NormOptions): Tensor;
    /** Root mean square normalisation along an axis, whose length `gain` has. */
    rmsNorm(gain: Tensor<DType>, options?: NormOptions): Tensor;

    /**
     * The matrix product. A tensor of one axis is a row on the left and a column on the right, whose axis the result
     * lacks; of more than two axes the last two are those of matrices, and the others broadcast.
     */
    matmul(b: Tensor<DType>): Tensor;
    /**
     * The convolution of images `[images, channels, rows, cols]`, or of one without the first axis, by weights
     * `[filters, channels / groups, rows, cols]`; kernels are not flipped.
     */
    conv2d(weights: Tensor<DType>, options?: TensorConv2dOptions): Tensor;

    /** Swaps two axes, the last two by default. */
    transpose(first?: number, second?: number): Tensor<D>;
    /** Brings all axes into another order. */
    permute(axes: readonly number[]): Tensor<D>;
    /** The same elements in another shape. One length may be −1: it follows from the others. */
    reshape(shape: readonly number[]): Tensor<D>;
    /** The same elements along one axis. */
    flatten(): Tensor<D>;
    /** Leaves out axes of length 1, all of them by default. */
    squeeze(axis?: Axes): Tensor<D>;
    /** Adds an axis of length 1, at this place of the result. */
    unsqueeze(axis: number): Tensor<D>;
    /** The same as `unsqueeze`. */
    expandDims(axis: number): Tensor<D>;
    /** Repeats elements up to a shape, by the rules of broadcasting. */
    broadcastTo(shape: readonly number[]): Tensor<D>;
    /** Takes a range of each axis; all of the axes that have none. */
    slice(ranges: readonly Range[]): Tensor<D>;
    /** Joins tensors after this one along an axis, the first by default. */
    concat(others: Tensor<D> | readonly Tensor<D>[], axis?: number): Tensor<D>;
    concat(others: Tensor<DType> | readonly Tensor<DType>[], axis?: number): Tensor;
    /**
     * The elements at indices along an axis, the first by default; the axes of `indices` stand in its place. An index
     * that is not on the axis is an error where the host has it; one that was computed or is on the device gives NaN.
     */
    gather(indices: Tensor<DType> | TensorValues | Uint32Array, axis?: number): Tensor;
    /**
     * One-hot vectors of the elements along a new last axis of length `classes`: 1 at an element's index, 0 elsewhere.
     * An invalid index is an error if the host has it. If it was computed or is on the device, the result is NaN.
     */
    oneHot(classes: number): Tensor;
    /**
     * Returns the gradients of this tensor, which has one element, with respect to a tensor, or to arrays and objects of
     * tensors: tensors of their shapes in the same structure. A tensor that this one does not depend on gets zeros.
     * Equal extremes share a gradient evenly. Throws with code `SHAPE_MISMATCH` if this tensor has more or less than one
     * element, with `INVALID_ARGUMENT` if it was run already, or for tensors of another type than `'f32'`, and with `NOT_LOADED`
     * without `import 'relampago/train'`.
     */
    gradients<Tensors>(withRespectTo: Tensors & TensorTree<Tensors>): Tensors;
    /** The same elements as a constant, through which no gradient flows. */
    stopGradient(): Tensor<D>;
    /**
     * The mean cross entropy of logits, whose last axis has the classes: −ln p of the right class by the softmax, without
     * overflow. `labels` has the class of each row, or a probability for each class in the shape of the logits.
     */
    crossEntropy(labels: Tensor<DType> | TensorValues | Uint32Array): Tensor;
    /** The `k` largest elements along the last axis, from the largest on, and their indices. */
    topK(k: number): { values: Tensor; indices: Tensor<'u32'> };
}

declare module '#computing' {
    interface GpuDevice {
        /**
         * A tensor of values, which are copied; nothing runs yet. The shape is that of nested arrays, and the length of a
         * typed array, unless given. Throws with code `SHAPE_MISMATCH` if it does not fit the values.
         */
        tensor(values: Uint32Array, shape?: readonly number[]): Tensor<'u32'>;
        tensor(values: TensorSource, shape?: readonly number[]): Tensor;
        /** A tensor of zeros. */
        zeros(shape: readonly number[]): Tensor;
        /** A tensor of ones. */
        ones(shape: readonly number[]): Tensor;
        /** A tensor whose elements are all `value`. */
        full(shape: readonly number[], value: number): Tensor;
        /** A tensor of an image's channels, from 0 to 1. Throws with code `SHAPE_MISMATCH` if pixels are missing. */
        fromImage(image: ImageBytes, options?: ImageLayout): Tensor;
        /** Tensors of random numbers. */
        readonly random: RandomTensors;
        /**
         * Returns a function that runs `f` as one program. `f` records: it is called once for each structure of shapes, must
         * not be async, and returns a tensor, or arrays and objects of tensors, whose values then stay on the device.
         * Numbers and tensors that it takes from outside stay as they were at the first call; arguments may change.
         */
        jit<Parameters extends readonly any[], Result>(
            f: (...parameters: Parameters) => Result & TensorTree<Result>,
        ): (...values: Arguments<Parameters>) => Promise<Result>;
        /**
         * Returns a function that returns the gradients of `f`, with respect to its first argument: a tensor, or arrays and
         * objects of tensors, whose structure the gradients have. `f` returns a loss, which is a tensor of one element.
         * Tensors that it takes from outside, and its other arguments, are constants.
         */
        gradients<Parameters = any, Others extends readonly any[] = any[]>(
            f: (parameters: Parameters, ...others: Others) => Tensor,
        ): (parameters: Parameters & TensorTree<Parameters>, ...others: Others) => Parameters;
        /** Returns a function that returns the value of `f`, too: see `gradients`. */
        valueAndGradients<Parameters = any, Others extends readonly any[] = any[]>(
            f: (parameters: Parameters, ...others: Others) => Tensor,
        ): (
            parameters: Parameters & TensorTree<Parameters>,
            ...others: Others
        ) => { value: Tensor; gradients: Parameters };
        /** Computes tensors in one submission; their values stay on the device. Returns the tensors. */
        run<const Tensors extends readonly Tensor<DType>[]>(tensors: Tensors, options?: AbortOptions): Promise<Tensors>;
        /** Computes tensors in one submission, and returns the values of each. */
        read<const Tensors extends readonly Tensor<DType>[]>(
            tensors: Tensors,
            options?: AbortOptions,
        ): Promise<{ -readonly [Place in keyof Tensors]: DataOf<Tensors[Place]['dtype']> }>;
        /**
         * Calls `f`, and then disposes of the tensors that were made from values or computed by `run` meanwhile, except
         * those that its result has or needs: a tensor, or arrays and objects of tensors. Scopes of one device may lie
         * within each other. They must not overlap otherwise: a tensor belongs to the scope that was opened last.
         */
        scope<Result>(f: () => Result): Promise<Awaited<Result>>;
        /** The number of programs that tensors needed so far, and the number of cached ones. */
        readonly tensors: { readonly planned: number; readonly cached: number };
    }
}
