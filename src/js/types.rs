//! TypeScript's names for arguments and results.

use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/**
 * The back-end that runs operations: chosen automatically, the GPU, or the CPU's SIMD instructions. `'webgpu'`, the name
 * that `device.backend` has for the GPU, is the same as `'gpu'`.
 */
export type BackendChoice = 'auto' | 'gpu' | 'webgpu' | 'simd';

/** The back-end that was chosen. */
export type BackendName = 'webgpu' | 'simd';

/** The option to abort an asynchronous method. */
export interface AbortOptions {
    /** Rejects the promise with code `ABORTED`, before the work is submitted or after it is done. */
    signal?: AbortSignal | null | undefined;
}

/** Options of a result. `Memory` is the class of the buffer of `into`, and so of the result. */
export interface ResultOptions<Memory extends ArrayBufferLike = ArrayBufferLike> extends AbortOptions {
    /**
     * The array for the result, of exactly its length (code `LENGTH_MISMATCH`), instead of a new
     * one. On SIMD this saves an allocation and its garbage collection. If the promise rejects,
     * the array is unchanged, unless a custom function failed half-way. It may be one of the
     * arguments. An array that overlaps an argument in another way gives the right result, but
     * saves no time. Its memory may be shared with other threads.
     */
    into?: Float32Array<Memory> | undefined;
}

export interface ResultsOptions<Memory extends ArrayBufferLike = ArrayBufferLike> extends AbortOptions {
    /**
     * An array for each result, in order, like `into` of `ResultOptions`; a result without one gets
     * a new array. No two of them may overlap in one buffer (code `INVALID_ARGUMENT`).
     */
    into?: readonly (Float32Array<Memory> | undefined)[] | undefined;
}

/**
 * The least work of each class of operations for which the automatic choice uses the GPU:
 * multiply-adds for `matmul` and `convolution`, elements for the others. `Infinity` means never. Attention
 * belongs to `matmul`, norms to `softmax`.
 */
export interface Policy {
    elementwise: number;
    transcendental: number;
    reduction: number;
    softmax: number;
    matmul: number;
    convolution: number;
    movement: number;
}

/** The options of a device. */
export interface DeviceOptions extends AbortOptions {
    /** The back-end; the default is `'auto'`. */
    backend?: BackendChoice | undefined;
    /** Thresholds that replace the defaults of the named classes. */
    policy?: Partial<Policy> | undefined;
    /**
     * Whether the device runs in a worker, so that it does not block the page; the default is
     * `false`. Arrays are copied once and then transferred; `gpuDevice` and `gpuBuffer` are
     * undefined. The worker ends when the device, its buffers and its batches are disposed of. If
     * the worker fails, everything rejects with code `DEVICE_LOST`; if no worker can be started,
     * `create` rejects with code `UNSUPPORTED`.
     */
    worker?: boolean | undefined;
    /**
     * The number of threads that share large operations on SIMD, from 1 to 64, or `'auto'`: one for each core, at most 8.
     * The default is `'auto'` for a device in a worker, and 1 for others. Threads are workers that share a memory, in pages
     * that are cross-origin isolated; elsewhere there is one thread, and `info.threadsReason` says why. The device's
     * buffers, batches, programs and tensors are theirs, as with `worker`; small operations on arrays run in the calling
     * thread unless `worker` is true. Results are bit-identical for any number. GPUs use one thread.
     */
    threads?: number | 'auto' | undefined;
}

/** Information about a device and the reason for its choice. */
export interface DeviceInfo {
    readonly backend: BackendName;
    /** The reason for the choice, as a sentence. */
    readonly reason: string;
    /** The GPU's vendor and architecture, as far as the browser reports them. */
    readonly adapter: string | undefined;
    /** Whether the adapter is a software rasteriser on the CPU. */
    readonly software: boolean;
    /** The vector instructions that operations on the CPU use. */
    readonly instructionSet: string;
    /** Whether the device runs in a worker. */
    readonly worker: boolean;
    /** The number of threads that share large operations on SIMD. */
    readonly threads: number;
    /** Why there is one thread where `create` could have more; otherwise `undefined`. */
    readonly threadsReason?: string | undefined;
    /** The largest number of values in one buffer; `undefined` if only memory limits it. */
    readonly maxBufferLength: number | undefined;
}

/** The shape and storage of a matmul, `m × k` times `k × n`, row-major. */
export interface MatmulOptions {
    m: number;
    k: number;
    n: number;
    /** Whether `a` is stored as a `k × m` matrix. */
    transposeA?: boolean | undefined;
    /** Whether `b` is stored as an `n × k` matrix, as the weights of most models are. */
    transposeB?: boolean | undefined;
}

/** The shape and options of a convolution (conv2d); matrices are row-major. */
export interface Conv2dOptions {
    inputRows: number;
    inputCols: number;
    kernelRows: number;
    kernelCols: number;
    /** The padding: `'valid'` (the default) has none, `'same'` pads with zeros to the input's size. */
    padding?: 'valid' | 'same' | undefined;
    /** Rows between two windows (the vertical stride); the default is 1. */
    strideRows?: number | undefined;
    /** Columns between two windows (the horizontal stride); the default is 1. */
    strideCols?: number | undefined;
}

declare const bufferId: unique symbol;
/** A buffer of one batch: an input or the result of a recorded operation. */
export type BufferId = number & { readonly [bufferId]: true };

/** An argument of a program for a placeholder: values, or a buffer of its device. */
export type ProgramArgument = Float32Array | DeviceBuffer;

/** A place that a kernel reads or writes: an input, by its index as recorded, or a buffer of the plan. */
export type PlanPlace = { length: number } & ({ input: number } | { buffer: number });

/** A kernel of a plan. */
export interface PlanKernel {
    /** The names of its operations, in order. */
    operations: string[];
    /** The back-end that runs it. `read` runs a program that is one elementwise kernel where the policy sends it. */
    backend: BackendName;
    reads: PlanPlace[];
    writes: PlanPlace;
    bytesMoved: number;
    /** The time of one run, in what `Program.time` returns. */
    milliseconds?: number | undefined;
}

/** The plan of a batch: kernels in order, and the lengths of the buffers between them. */
export interface Plan {
    kernels: PlanKernel[];
    buffers: number[];
}

export interface DeviceBuffer {
    /** Copies the values to `into`, or to a new array. */
    read<Memory extends ArrayBufferLike = ArrayBuffer>(options?: ResultOptions<Memory>): Promise<Float32Array<Memory>>;
}

export interface GpuCommandBatch {
    /** Copies the values of a buffer to `into`, or to a new array, after `execute`. */
    read<Memory extends ArrayBufferLike = ArrayBuffer>(
        id: BufferId,
        options?: ResultOptions<Memory>,
    ): Promise<Float32Array<Memory>>;
    /** Returns the kernels and buffers that `execute` would use for the operations recorded so far. */
    explain(): Promise<Plan>;
}

export interface Program {
    /** Returns the kernels and buffers that the program uses. */
    explain(): Promise<Plan>;
    /**
     * Runs once with an argument for each placeholder, and returns the plan with the time of each kernel. A browser may
     * round a GPU's times to 0.1 ms; one without `timestamp-query` rejects with code `GPU`.
     */
    time(args: readonly ProgramArgument[], options?: AbortOptions): Promise<Plan>;
    /** Runs with an argument for each placeholder; the results stay on the device. */
    run(args: readonly ProgramArgument[], options?: AbortOptions): Promise<DeviceBuffer[]>;
    /**
     * Runs, and copies the results to `Float32Array`s. On a device with a GPU, elementwise operations
     * between arrays run where the policy sends them.
     */
    read<Memory extends ArrayBufferLike = ArrayBuffer>(
        args: readonly ProgramArgument[],
        options?: ResultsOptions<Memory>,
    ): Promise<Float32Array<ArrayBuffer | Memory>[]>;
    /**
     * Runs `times` times. After each run, each pair `[result, argument]` of `feedback` makes a
     * result the argument of the next run, without leaving the device. If two pairs name the same
     * argument, the last one wins.
     */
    runN(
        args: readonly ProgramArgument[],
        times: number,
        feedback: readonly (readonly [result: number, argument: number])[],
        options?: AbortOptions,
    ): Promise<DeviceBuffer[]>;
    /** Runs with each list of arguments in turn, and returns the results in that order. */
    stream(
        runs: Iterable<readonly ProgramArgument[]> | AsyncIterable<readonly ProgramArgument[]>,
        options?: AbortOptions,
    ): AsyncGenerator<Float32Array<ArrayBuffer>[], void, undefined>;
}
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "number")]
    pub type Count;
    #[wasm_bindgen(typescript_type = "Float32Array")]
    pub type Values;
    #[wasm_bindgen(typescript_type = "BufferId")]
    pub type Id;
    #[wasm_bindgen(typescript_type = "AbortOptions")]
    pub type AbortOptions;
    #[wasm_bindgen(typescript_type = "DeviceOptions")]
    pub type DeviceOptions;
    #[wasm_bindgen(typescript_type = "DeviceInfo")]
    pub type JsDeviceInfo;
    #[wasm_bindgen(typescript_type = "BackendName")]
    pub type BackendName;
    #[wasm_bindgen(typescript_type = "Policy")]
    pub type JsPolicy;
    #[wasm_bindgen(typescript_type = "GPUDevice | undefined")]
    pub type RawDevice;
    #[wasm_bindgen(typescript_type = "GPUBuffer | undefined")]
    pub type RawBuffer;
    #[wasm_bindgen(typescript_type = "Promise<Float32Array<ArrayBuffer>>")]
    pub type PromiseOfValues;
    #[wasm_bindgen(typescript_type = "Promise<void>")]
    pub type PromiseOfNothing;
    #[wasm_bindgen(typescript_type = "Promise<GpuDevice>")]
    pub type PromiseOfDevice;
    #[wasm_bindgen(typescript_type = "Promise<DeviceBuffer>")]
    pub type PromiseOfBuffer;
    #[wasm_bindgen(typescript_type = "readonly BufferId[]")]
    pub type Ids;
    #[wasm_bindgen(typescript_type = "Promise<Program>")]
    pub type PromiseOfProgram;
    #[wasm_bindgen(typescript_type = "Promise<boolean>")]
    pub type PromiseOfBool;
}
