import load, { PtxKernel as Kernel, PtxModule as Module, buildKernel as build, targetNames } from '#ptx';
import { RelampagoError } from '../common/error.js';
import { loader, located } from '../common/loader.js';
import { MADE, Owner, ownedBy } from '../common/owner.js';

export { RelampagoError, targetNames };

/** @extends {Owner<Kernel>} */
export class PtxKernel extends Owner {
    // The package's script has shorter names, which errors should not show.
    static name = 'PtxKernel';

    get name() {
        return ownedBy(this).name;
    }

    get target() {
        return ownedBy(this).target;
    }

    get text() {
        return ownedBy(this).text;
    }

    get params() {
        return ownedBy(this).params;
    }

    get launch() {
        return ownedBy(this).launch;
    }

    get registers() {
        return ownedBy(this).registers;
    }

    get sharedBytes() {
        return ownedBy(this).sharedBytes;
    }

    get dynamicSharedBytes() {
        return ownedBy(this).dynamicSharedBytes;
    }

    /**
     * @param {any} sizes
     * @param {any} multiprocessors
     */
    grid(sizes, multiprocessors) {
        return ownedBy(this).grid(sizes, multiprocessors);
    }
}

/** @extends {Owner<Module>} */
export class PtxModule extends Owner {
    static name = 'PtxModule';

    /** @param {any} target */
    constructor(target) {
        super(new Module(target), MADE);
    }

    get text() {
        return ownedBy(this).text;
    }

    /** @param {any} kernel */
    add(kernel) {
        if (!(kernel instanceof PtxKernel)) {
            throw new RelampagoError('INVALID_ARGUMENT', '`kernel` must be a PtxKernel');
        }
        ownedBy(this).add(ownedBy(kernel));
    }
}

/**
 * @param {any} description
 * @param {any} [target]
 */
export const buildKernel = (description, target) => new PtxKernel(build(description, target), MADE);

export const moduleUrl = located(() => new URL('./relampago_ptx.wasm', import.meta.url));

export default loader(load, moduleUrl);
