import './ops.js';

export * from './base.js';
export { default } from './base.js';
export * from './extras.js';

export {
    type AbortOptions,
    type BackendChoice,
    type BackendName,
    type BufferId,
    type Conv2dOptions,
    type DeviceInfo,
    type DeviceOptions,
    type MatmulOptions,
    type Plan,
    type PlanPlace,
    type Policy,
    type ProgramArgument,
    type ResultOptions,
    type ResultsOptions,
    DeviceBuffer,
    GpuCommandBatch,
    GpuDevice,
    Program,
} from './relampago.js';
