import './ops.js';

export * from './base.js';
export { default } from './base.js';
export type {
    AttentionOptions,
    ConvLayerOptions,
    HalfPrecision,
    RopeOptions,
    TuneOperation,
    Tuning,
} from './device.js';
export {
    type Axes,
    type NestedArray,
    type NormOptions,
    type Operand,
    type PaddingOption,
    type Range,
    type ReduceOptions,
    type TensorConv2dOptions,
    type TensorSource,
    type TensorValues,
    Tensor,
} from './tensor/tensor.js';

export {
    type AbortOptions,
    type BackendChoice,
    type BackendName,
    type BlockOptions,
    type BufferId,
    type CachedWeights,
    type Conv2dOptions,
    type CustomOpDefinition,
    type DeviceInfo,
    type DeviceOptions,
    type MatmulOptions,
    type Partials,
    type Plan,
    type PlanPlace,
    type Policy,
    type ProgramArgument,
    type Reduction,
    type ResultOptions,
    type ResultsOptions,
    type Shape,
    type ViewOptions,
    type WeightFormat,
    type WeightOptions,
    CustomOp,
    DeviceBuffer,
    GpuCommandBatch,
    GpuDevice,
    GpuMatmulCache,
    Program,
    TensorView,
} from './relampago.js';
