// The methods of executors, which compute for objects of the package: in this thread the classes of wasm-bindgen, and for
// objects in a worker the classes of `workers/`.

import type { Link } from './workers/link.js';

/** A value that a worker gives later. */
type Later<T> = T | Promise<T>;

type Abort = { signal?: AbortSignal | null } | undefined;

export interface Executor {
    /** The connection to the worker; wasm-bindgen's objects have none. */
    readonly link?: Link;
    dispose(): void;
    /** Releases the memory of wasm-bindgen's object. */
    free?(): void;
}

export interface DeviceExecutor extends Executor {
    readonly backend: string;
    readonly info: Record<string, any>;
    readonly policy: Record<string, number>;
    readonly gpuDevice: unknown;
    /** Returns the result of the operation at an index in the op table, or undefined where it takes a promise. */
    runNow(index: number, values: any[], into: Float32Array | undefined): Float32Array | number | undefined;
    runOp(index: number, values: any[], options: Abort): Promise<Float32Array | number>;
    upload(values: any, options?: Abort): Promise<BufferExecutor>;
    uploadNow(values: Float32Array): BufferExecutor | undefined;
    owns(buffer: BufferExecutor): boolean;
    batch(): BatchExecutor;
    matmulCache(): CacheExecutor;
    matmulView(aView: ViewExecutor, a: any, bView: ViewExecutor, b: any, options: Abort): Promise<Float32Array>;
    tiledReduce2d(reduction: any, values: any, rows: any, cols: any, options: Abort): Promise<number>;
    tiledReducePartial(reduction: any, values: any, rows: any, cols: any, options: Abort): Promise<object>;
    /** Returns the program of a graph, and for each result its index among the program's, or −1 − k for leaf k. */
    planGraph(words: Float32Array, sizes: number[]): Promise<[ProgramExecutor | undefined, ...number[]]>;
    tuneOne(index: number, values: any[], options: Abort): Promise<any[]>;
    verifyNow(fails: boolean, options: Abort): Promise<{ cases: any[]; turnedOff: object[] }>;
    choices(): Later<Uint8Array>;
    adoptChoices(choices: Uint8Array): Later<void>;
    rebuild(options: Abort): Promise<DeviceExecutor>;
    /** Asks for what checks change. */
    refresh?(): Promise<void>;
}

export interface BufferExecutor extends Executor {
    readonly length: number;
    readonly gpuBuffer: unknown;
    readValues(into: Float32Array | undefined, options: any): Promise<Float32Array>;
}

export interface BatchExecutor extends Executor {
    upload(values: any): number;
    input(buffer: BufferExecutor): number;
    placeholder(length: any): number;
    record(index: number, values: any[]): number;
    matmulCached(cache: CacheExecutor, name: any, input: any, m: any): number;
    customElementwise(op: CustomExecutor, inputs: any, parameters: any): number;
    output(id: any): void;
    keep(id: any): BufferExecutor;
    describe(): Later<any[]>;
    compile(outputs: any, options: Abort): Promise<ProgramExecutor>;
    execute(options: Abort): Promise<void>;
    readValues(id: any, into: Float32Array | undefined, options: any): Promise<Float32Array>;
}

export interface ProgramExecutor extends Executor {
    /** Sets an argument of the next run; arguments are set in order. */
    setValues(place: number, values: any): void;
    setBuffer(place: number, buffer: BufferExecutor): void;
    readNow(values: any[], into: Float32Array | undefined): Float32Array | undefined;
    /** Runs with the first `count` arguments that were set; the results are arrays if `read` is true. */
    start(count: number, read: boolean, times: number, feedback: number[], options: any): Promise<any[]>;
    describe(): Later<any[]>;
    kernelTimes(count: number, options: Abort): Promise<number[]>;
}

export interface CacheExecutor extends Executor {
    insert(name: any, weights: any, options: any, abort: Abort): Promise<void>;
    insertBlocks(name: any, blocks: any, options: any, abort: Abort): Promise<void>;
    matmulCached(name: any, input: any, m: any, abort: Abort): Promise<Float32Array>;
    remove(name: any): Promise<boolean>;
    weights(): Promise<object[]>;
}

export interface ViewExecutor extends Executor {
    readonly shape: number[];
    readonly strides: number[];
    readonly offset: number;
    readonly length: number;
    slice(dim: any, start: any, end: any): ViewExecutor;
    transpose(dim0: any, dim1: any): ViewExecutor;
    reshape(shape: any): ViewExecutor;
    gather(values: any): Float32Array;
    reduce(reduction: any, values: any): number;
    reduceTiles(reduction: any, values: any, tile: any): object;
}

export interface CustomExecutor extends Executor {
    readonly name: string;
}
