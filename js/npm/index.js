import load from '#computing';
import { moduleUrl } from '../common/instructions.js';
import { loader } from '../common/loader.js';

/** For `node.js`; not part of the interface. */
export { host } from './opening.js';

/** For `relampago/train` and `relampago/numeric`; not part of the interface. */
export { entered } from '../common/stack.js';
export { entryOf } from './tensor/extension.js';
export { unshaped } from './tensor/movement.js';
export { LEAST_RESIDENT, PARAMETER, added, bitsOf, described } from './tensor/node.js';
export { optionsOf } from './tensor/options.js';
export { seedOf } from './tensor/random.js';
export { leaf, record } from './tensor/record.js';
export { enter } from './tensor/scope.js';
export { failure, shown, sizeOf, text } from './tensor/shape.js';
export { arrangedTensors, beside, indicesOf, listed, required } from './tensor/tensor.js';

export { CustomOp } from './custom_op.js';
export { DeviceBuffer } from './device_buffer.js';
export { GpuCommandBatch } from './batch.js';
export { GpuDevice } from './device.js';
export { GpuMatmulCache } from './matmul_cache.js';
export { Program } from './program.js';
export { RelampagoError } from '../common/error.js';
export { Tensor } from './tensor/tensor.js';
export { TensorView } from './tensor_view.js';
export { moduleUrl } from '../common/instructions.js';
export { provideShaders } from './shaders_loader.js';

/** For the script that is loaded for workers; not part of the interface. */
export * from './core.js';

/**
 * @typedef {import('./tensor/node.js').Node} Node
 * @typedef {import('./tensor/shape.js').Shape} Shape
 */

export default loader(load, moduleUrl);
