// What only the full edition has, of devices in workers.

import { GpuMatmulCache, TensorView } from '../extras.js';
import { RelampagoError, invalid } from '../core.js';
import { abortable, copied } from './arguments.js';
import { RemoteBatch } from './batch.js';
import { RemoteDevice } from './device.js';
import { remote } from './handle.js';
import { nextNumber } from './link.js';

/** Weights that a worker holds. */
class RemoteMatmulCache extends remote(GpuMatmulCache, 'GpuMatmulCache') {
    async weights() {
        return this.handle.call('weights');
    }

    async remove(name) {
        return this.handle.call('remove', { values: [name] });
    }
}

/** The shape of a view that must be one of a matrix. */
function matrix(what, view) {
    if (!(view instanceof TensorView)) {
        throw invalid(`${what}View`, view, 'a TensorView');
    }
    const { shape } = view;
    if (shape[2] * shape[3] !== 1) {
        throw new RelampagoError('INVALID_ARGUMENT', `\`${what}\` is of shape [${shape.join(', ')}], but must be a matrix`);
    }
    return shape;
}

Object.assign(RemoteDevice.prototype, {
    matmulCache() {
        const { link } = this.handle;
        const as = nextNumber();
        this.handle.post('matmulCache', { as });
        return new RemoteMatmulCache(link, [as]);
    },

    /** What views show is gathered here, for it is copied on its way in any case. */
    async matmulView(aView, a, bView, b, options) {
        const [[m, k], [rows, n]] = [matrix('a', aView), matrix('b', bView)];
        if (rows !== k) {
            const shapes = `\`b\` is ${rows}×${n} beside ${m}×${k}`;
            throw new RelampagoError('INVALID_ARGUMENT', `${shapes}, but must be of as many rows as \`a\` has columns`);
        }
        return this.matmul(aView.gather(a), bView.gather(b), m, k, n, options);
    },
});

RemoteBatch.prototype.customElementwise = () => {
    throw new RelampagoError('UNSUPPORTED', 'a function cannot go to a worker');
};

/** Methods whose arguments go to the worker as they are, with how many there are of them. */
const forward = (prototype, methods) => {
    for (const [name, count] of Object.entries(methods)) {
        prototype[name] = function (...values) {
            const call = () => this.handle.call(name, { values: values.slice(0, count).map(copied) });
            return abortable(values[count], call);
        };
    }
};
forward(RemoteDevice.prototype, { tiledReduce2d: 4, tiledReducePartial: 4, tuneOne: 2, adoptChoices: 1, choices: 0 });
forward(RemoteMatmulCache.prototype, { insert: 3, insertBlocks: 3, matmulCached: 3 });
