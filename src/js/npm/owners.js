// Methods of the module's classes that return at once: called without their object they say so.

import { GpuCommandBatch, GpuDevice } from './core.js';
import { requireOwner } from './mix_ups.js';

const METHODS = [
    [GpuDevice, 'device', ['batch', 'matmulCache']],
    [GpuCommandBatch, 'batch', ['upload', 'input', 'placeholder', 'matmulCached', 'customElementwise', 'output', 'keep']],
];
for (const [Class, what, names] of METHODS) {
    const { prototype } = Class;
    for (const name of names) {
        const { [name]: call } = prototype;
        prototype[name] = function (...values) {
            requireOwner(this, Class, what, name);
            return call.apply(this, values);
        };
    }
}
