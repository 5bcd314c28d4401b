// The classes of the module that computes, as wasm-bindgen makes them; `src/js` has their documentation.

import type {
    BatchExecutor, BufferExecutor, CacheExecutor, CustomExecutor, DeviceExecutor, ProgramExecutor, ViewExecutor,
} from '../npm/executors.js';

interface Freed {
    free(): void;
}

export class GpuDevice {
    private constructor();
    static create(options?: any): Promise<GpuDevice>;
    static isAvailable(): Promise<boolean>;
    static gpuBytes(): number;
    static fillRandom(into: Float32Array, seed: number, normal: boolean): void;
    static module(): WebAssembly.Module;
}
export interface GpuDevice extends DeviceExecutor, Freed {
    /** Has `runNow` leave what the threads of another device divide. */
    leaveTo(threads: number): void;
}

export class DeviceBuffer {
    private constructor();
}
export interface DeviceBuffer extends BufferExecutor, Freed {}

export class GpuCommandBatch {
    private constructor();
    static lengthOf(index: number, values: any[]): number;
}
export interface GpuCommandBatch extends BatchExecutor, Freed {}

export class Program {
    private constructor();
}
export interface Program extends ProgramExecutor, Freed {}

export class GpuMatmulCache {
    private constructor();
}
export interface GpuMatmulCache extends CacheExecutor, Freed {}

export class TensorView {
    constructor(shape: any, options?: any);
}
export interface TensorView extends ViewExecutor, Freed {}

export class CustomOp {
    constructor(definition: any);
}
export interface CustomOp extends CustomExecutor, Freed {}

export function allocatedBytes(): number;

/** Of modules whose threads share memory. */
export function runThread(): void;
export function startThreads(count: number): void;

export default function load(options: { module_or_path: any; memory?: WebAssembly.Memory }): Promise<unknown>;

/** The memory of the module and of the GPU, in bytes, which unit tests set. */
export const memory: { module: number; gpu: number };
