// Methods of the module's classes that no other script replaces: called without their object they say so, and errors name
// them.

import { GpuCommandBatch, GpuDevice, GpuMatmulCache, TensorView } from './core.js';
import { named, namedLater } from './methods.js';

const METHODS = [
    [GpuDevice, 'device', ['batch', 'matmulCache']],
    [GpuCommandBatch, 'batch', ['upload', 'input', 'placeholder', 'matmulCached', 'customElementwise', 'output', 'keep']],
    [TensorView, 'view', ['slice', 'transpose', 'reshape', 'gather', 'reduce', 'reduceTiles']],
];
for (const [Class, what, names] of METHODS) {
    const { prototype } = Class;
    for (const name of names) {
        prototype[name] = named(Class, what, name, prototype[name]);
    }
}
for (const name of ['remove', 'weights']) {
    const { prototype } = GpuMatmulCache;
    prototype[name] = namedLater(GpuMatmulCache, 'cache', name, prototype[name]);
}
