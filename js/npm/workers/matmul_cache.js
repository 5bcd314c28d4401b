import { GpuMatmulCache, rememberShapes } from '../core.js';
import { forward } from './arguments.js';
import { owned, remote } from './handle.js';

/** Weights that a worker holds. */
export class RemoteMatmulCache extends remote(GpuMatmulCache, 'GpuMatmulCache') {
    async weights() {
        return this.handle.call('weights');
    }
}
forward(RemoteMatmulCache.prototype, { insert: 3, insertBlocks: 3, matmulCached: 3, remove: 1 });
rememberShapes(RemoteMatmulCache.prototype);
owned(RemoteMatmulCache, 'cache', [], { insert: 3, insertBlocks: 3, matmulCached: 3, remove: undefined, weights: undefined });
