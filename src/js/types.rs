//! TypeScript's names for what goes in and out.

use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** Where operations run: chosen automatically, on the GPU, or on the CPU's vector instructions. */
export type BackendChoice = 'auto' | 'gpu' | 'simd';

/** What was chosen. */
export type BackendName = 'webgpu' | 'simd';

/** An option of everything that takes time. */
export interface AbortOptions {
    /** Rejects the promise with code `ABORTED`, before the work is submitted or after it is done. */
    signal?: AbortSignal | null;
}

/** `Memory` is the class of the buffer that `into` lies in, and that the result has, too. */
export interface ResultOptions<Memory extends ArrayBufferLike = ArrayBufferLike> extends AbortOptions {
    /**
     * The array that gets the result, of exactly its length (code `LENGTH_MISMATCH`), instead of
     * a new one: what new memory takes, and its collection, is spared on SIMD. It is left as it
     * was where the promise rejects, unless a function of one's own did that half-way. It may be an
     * argument; one that shares memory with an argument in another way is right, but not faster.
     * Its memory may be shared with other threads.
     */
    into?: Float32Array<Memory>;
}

export interface ResultsOptions<Memory extends ArrayBufferLike = ArrayBufferLike> extends AbortOptions {
    /**
     * As `ResultOptions` has it, an array for each result in turn; those without one are new. No two
     * of them may overlap in one buffer (code `INVALID_ARGUMENT`).
     */
    into?: readonly (Float32Array<Memory> | undefined)[];
}

/**
 * For each class of operations the least work from which the automatic choice takes the GPU:
 * multiply-adds for `matmul` and `convolution`, values for the others; `Infinity` is never.
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

/** Choices made when a device is created. */
export interface DeviceOptions extends AbortOptions {
    /** `'auto'` unless given. */
    backend?: BackendChoice;
    /** Replaces the default for the classes named. */
    policy?: Partial<Policy>;
    /**
     * Whether the device lives in a worker, so that the page goes on while it computes; `false`
     * unless given. Arrays are copied once and then transferred, `gpuDevice` and `gpuBuffer` are
     * undefined, and the worker ends when the device, its buffers and its batches are disposed
     * of. If it fails, everything rejects with code `DEVICE_LOST`; if there can be none, `create`
     * does with code `UNSUPPORTED`.
     */
    worker?: boolean;
    /**
     * How many threads share large calls of `matmul` and `convolve2d` on SIMD, from 1 to 64; 1
     * unless given. All but the device's own are workers, which end with it. Results are the
     * same, bit by bit; batches and everything else use one thread.
     */
    threads?: number;
}

/** What a device is and why it was chosen. */
export interface DeviceInfo {
    readonly backend: BackendName;
    /** Why that one, in a sentence. */
    readonly reason: string;
    /** The GPU's vendor and architecture, as far as the browser tells them. */
    readonly adapter: string | undefined;
    /** Whether that GPU is a program running on the CPU. */
    readonly software: boolean;
    /** The vector instructions that operations on the CPU use. */
    readonly instructionSet: string;
    /** The most values that one buffer holds; `undefined` where only memory limits them. */
    readonly maxBufferLength: number | undefined;
}

/** Shape and storage of a matrix product, `m × k` times `k × n`, stored row by row. */
export interface MatmulOptions {
    m: number;
    k: number;
    n: number;
    /** Whether `a` is stored as a `k × m` matrix. */
    transposeA?: boolean;
    /** Whether `b` is stored as an `n × k` matrix, as the weights of most models are. */
    transposeB?: boolean;
}

/** Shape and options of a convolution; matrices are stored row by row. */
export interface Conv2dOptions {
    inputRows: number;
    inputCols: number;
    kernelRows: number;
    kernelCols: number;
    /** `'valid'` (unless given): the window stays inside. `'same'`: zeros are read outside. */
    padding?: 'valid' | 'same';
    /** Rows between two windows; 1 unless given. */
    strideRows?: number;
    /** Columns between two windows; 1 unless given. */
    strideCols?: number;
}

declare const bufferId: unique symbol;
/** A buffer of one batch: an input or the result of a recorded operation. */
export type BufferId = number & { readonly [bufferId]: true };

/** What a program takes for a placeholder: values, or a buffer of its device. */
export type ProgramArgument = Float32Array | DeviceBuffer;

/** Where a kernel reads or writes: an input, counted as recorded, or a buffer of the plan. */
export type PlanPlace = { length: number } & ({ input: number } | { buffer: number });

/** What becomes of a batch: kernels in order, and the buffers between them, by their lengths. */
export interface Plan {
    kernels: { operations: string[]; reads: PlanPlace[]; writes: PlanPlace; bytesMoved: number }[];
    buffers: number[];
}

export interface GpuCommandBatch {
    /** How `execute` would run what is recorded so far. */
    explain(): Promise<Plan>;
}

export interface Program {
    /** How it runs. */
    explain(): Promise<Plan>;
    /** Runs with an argument for each placeholder; the results stay on the device. */
    run(args: readonly ProgramArgument[], options?: AbortOptions): Promise<DeviceBuffer[]>;
    /**
     * Runs, and copies the results back. Beside a GPU, elementwise operations between arrays alone
     * go where the policy says.
     */
    read<Memory extends ArrayBufferLike = ArrayBuffer>(
        args: readonly ProgramArgument[],
        options?: ResultsOptions<Memory>,
    ): Promise<Float32Array<ArrayBuffer | Memory>[]>;
    /**
     * Runs `times` times. After each run the results at the first places of `feedback` become
     * the arguments at the second ones, without leaving the device; of two for one argument the last pair counts.
     */
    runN(
        args: readonly ProgramArgument[],
        times: number,
        feedback: readonly (readonly [result: number, argument: number])[],
        options?: AbortOptions,
    ): Promise<DeviceBuffer[]>;
    /** Runs with one list of arguments after the other; the results, in that order. */
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
