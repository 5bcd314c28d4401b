// What the full edition has in place of this file is more.

import { GpuDevice, RelampagoError } from './core.js';

const { create } = GpuDevice;
GpuDevice.create = async (options) => {
    if (options?.halfPrecision) {
        throw new RelampagoError('UNSUPPORTED', '`halfPrecision` is for relampago/full');
    }
    return create(options);
};
