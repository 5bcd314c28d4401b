import { TensorView as View } from '#computing';
import { guard } from './methods.js';
import { MADE, Owner, ownedBy } from '../common/owner.js';

/** @import { ViewExecutor } from './executors.js' */

/** @extends {Owner<ViewExecutor>} */
export class TensorView extends Owner {
    static name = 'TensorView';

    static {
        guard(this, 'view', ['slice', 'transpose', 'reshape', 'gather', 'reduce', 'reduceTiles']);
    }

    /**
     * @param {any} shape a shape, or a view of the module
     * @param {any} [options]
     */
    constructor(shape, options) {
        super(shape instanceof View ? shape : new View(shape, options), MADE);
    }

    get shape() {
        return ownedBy(this).shape;
    }

    get strides() {
        return ownedBy(this).strides;
    }

    get offset() {
        return ownedBy(this).offset;
    }

    get length() {
        return ownedBy(this).length;
    }

    /**
     * @param {any} dim
     * @param {any} start
     * @param {any} end
     */
    slice(dim, start, end) {
        return new TensorView(ownedBy(this).slice(dim, start, end));
    }

    /**
     * @param {any} dim0
     * @param {any} dim1
     */
    transpose(dim0, dim1) {
        return new TensorView(ownedBy(this).transpose(dim0, dim1));
    }

    /** @param {any} shape */
    reshape(shape) {
        return new TensorView(ownedBy(this).reshape(shape));
    }
}
