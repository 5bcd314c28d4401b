// Stands for the module that computes, in unit tests: classes without operations, and memory whose size a test sets.

/** The memory of the module and of the GPU, in bytes. */
export const memory = { module: 0, gpu: 0 };

export const allocatedBytes = () => memory.module;

export class GpuDevice {
    static gpuBytes() {
        return memory.gpu;
    }

    get info() {
        return { backend: 'simd' };
    }
}

export class CustomOp {}
export class DeviceBuffer {}
export class GpuCommandBatch {}
export class GpuMatmulCache {}
export class Program {}
export class TensorView {}

export default async () => {};
