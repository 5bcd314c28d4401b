// The parts of the package that the script for workers uses, too. It has no module of its own: `index.js` exports these.

export { GpuCommandBatch as ModuleBatch, GpuDevice as ModuleDevice } from '#computing';
export { ops } from '#ops';
export { RelampagoError } from '../common/error.js';
export { classOf } from './arrays.js';
export { checked, foreign, invalid, list, unlessAborted } from './checks.js';
export { DeviceBuffer } from './device_buffer.js';
export { countRemote } from './room.js';
