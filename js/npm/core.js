// The parts of the package that `workers/create.js` uses. It does not contain them: it imports them from `index.js`.

export { GpuCommandBatch as ModuleBatch, GpuDevice as ModuleDevice } from '#computing';
export { ops } from '#ops';
export { RelampagoError } from '../common/error.js';
export { classOf } from './arrays.js';
export { checked, foreign, invalid, list, unlessAborted } from './checks.js';
export { DeviceBuffer } from './device_buffer.js';
export { countRemote } from './room.js';
