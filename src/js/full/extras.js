// What only the full edition has.

import { GpuDevice, disposable } from './core.js';
import { CustomOp, GpuMatmulCache, TensorView } from './relampago.js';

export { CustomOp, GpuMatmulCache, TensorView };

[CustomOp, GpuMatmulCache, TensorView].forEach(disposable);

// Whatever is wrong with a call is for its promise to tell.
const { matmulView } = GpuDevice.prototype;
GpuDevice.prototype.matmulView = async function (...values) {
    return matmulView.apply(this, values);
};

for (const [name, reduction] of [['tiledSum2d', 'sum'], ['tiledMax2d', 'max'], ['tiledMin2d', 'min']]) {
    GpuDevice.prototype[name] = function (values, rows, cols, options) {
        return this.tiledReduce2d(reduction, values, rows, cols, options);
    };
}
