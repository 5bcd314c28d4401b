import { GpuDevice, RelampagoError, invalid, load } from './core.js';
import { explained } from './mix_ups.js';
import { requireNames } from '../common/options.js';
import { moduleUrl } from '../common/instructions.js';
import { loader } from '../common/loader.js';
import './owners.js';
import { traced } from '../common/stack.js';
import './streams.js';
import { extended } from './tensor/extension.js';
import { remembering } from './tuning.js';

export { Tensor } from './tensor/device.js';

export { moduleUrl } from '../common/instructions.js';
export { provideShaders } from './shaders_loader.js';
export {
    CustomOp, DeviceBuffer, GpuCommandBatch, GpuDevice, GpuMatmulCache, Program, RelampagoError, TensorView,
} from './core.js';

/** For the scripts that are loaded below; not part of the interface. */
export {
    cachedLength, checked, classOf, countRemote, foreign, invalid, lengthOf, list, ops, rememberShapes, repetition,
    named, namedLater, requireAbortable, traced, unlessAborted,
} from './core.js';

/** For `relampago/train` and `relampago/numeric`; not part of the interface. */
export { entered } from '../common/stack.js';
export { announce, extend } from './tensor/extension.js';
export { unshaped } from './tensor/movement.js';
export { LEAST_RESIDENT, PARAMETER, added, bitsOf, described } from './tensor/node.js';
export { optionsOf } from './tensor/options.js';
export { seedOf } from './tensor/random.js';
export { leaf, record } from './tensor/record.js';
export { enter } from './tensor/scope.js';
export { failure, shown, sizeOf, text } from './tensor/shape.js';
export { arrangedTensors, beside, indicesOf, listed, required } from './tensor/tensor.js';

const { create } = GpuDevice;

/** What `node.js` replaces. */
export const host = { workers: () => import('./workers/create.js') };

/** Creates a device here or, where workers or threads are asked for, with the script that is loaded for these. */
const open = async (options) => {
    const { worker = false } = options ?? {};
    if (typeof worker !== 'boolean') {
        throw invalid('worker', worker, 'true or false');
    }
    if (!worker && (options?.threads ?? 1) === 1) {
        return create(options);
    }
    const workers = await host.workers().catch((error) => {
        throw new RelampagoError('UNSUPPORTED', `no worker could be started: ${error.message}`, error);
    });
    return workers.create(options, create);
};

const OPTIONS = ['backend', 'halfPrecision', 'policy', 'signal', 'threads', 'worker'];
const POLICY = ['elementwise', 'transcendental', 'reduction', 'softmax', 'matmul', 'convolution', 'movement'];

GpuDevice.create = traced(async function created(options) {
    try {
        options == null || requireNames(options, OPTIONS);
        options?.policy == null || requireNames(options.policy, POLICY, '`policy`: ');
        const [device] = await Promise.all([open(options), extended()]);
        return await remembering(device);
    } catch (error) {
        throw explained(error, [], created, 'create');
    }
});
// The name that the Rust crate has for it.
GpuDevice.newAsync = GpuDevice.create;

export default loader(load, moduleUrl);
