// What only the full edition has.

import { GpuDevice, disposable } from './core.js';
import { CustomOp, GpuMatmulCache, TensorView } from './relampago.js';

export { CustomOp, GpuMatmulCache, TensorView };

[CustomOp, GpuMatmulCache, TensorView].forEach(disposable);

for (const [name, reduction] of [['tiledSum2d', 'sum'], ['tiledMax2d', 'max'], ['tiledMin2d', 'min']]) {
    GpuDevice.prototype[name] = function (values, rows, cols, options) {
        return this.tiledReduce2d(reduction, values, rows, cols, options);
    };
}
