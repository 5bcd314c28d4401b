import { CustomOp as Operation } from '#computing';
import { MADE, Owner, ownedBy } from '../common/owner.js';

/** @import { CustomExecutor } from './executors.js' */

/** @extends {Owner<CustomExecutor>} */
export class CustomOp extends Owner {
    static name = 'CustomOp';

    /** @param {any} definition */
    constructor(definition) {
        super(new Operation(definition), MADE);
    }

    get name() {
        return ownedBy(this).name;
    }
}
