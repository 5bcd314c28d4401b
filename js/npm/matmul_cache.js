import { requireNames } from '../common/options.js';
import { guard } from './methods.js';
import { Owner, ownedBy } from '../common/owner.js';

/** @import { CacheExecutor } from './executors.js' */

/** @extends {Owner<CacheExecutor>} */
export class GpuMatmulCache extends Owner {
    static name = 'GpuMatmulCache';

    static {
        guard(this, 'cache', [], { insert: 3, insertBlocks: 3, matmulCached: 3, remove: undefined, weights: undefined });
    }

    /**
     * @param {any} name
     * @param {any} weights
     * @param {any} options
     * @param {any} [abort]
     */
    async insert(name, weights, options, abort) {
        requireNames(options, ['k', 'n', 'format', 'transposed']);
        return ownedBy(this).insert(name, weights, options, abort);
    }

    /**
     * @param {any} name
     * @param {any} blocks
     * @param {any} options
     * @param {any} [abort]
     */
    async insertBlocks(name, blocks, options, abort) {
        requireNames(options, ['k', 'n', 'format']);
        return ownedBy(this).insertBlocks(name, blocks, options, abort);
    }
}
