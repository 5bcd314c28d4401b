// Arguments of the methods of tensors, and errors for arguments that are easily mixed up.

import { classOf } from '../arrays.js';
import { DeviceBuffer } from '../device_buffer.js';
import { number } from './record.js';
import { failure, shown } from './shape.js';

/**
 * @import { GpuDevice } from '../device.js'
 * @import { Node } from './node.js'
 */

/**
 * Describes a value that should have been a tensor or a number.
 * @param {any} value
 */
const mixUp = (value) => {
    if (value instanceof DeviceBuffer) {
        return 'is a DeviceBuffer; make it a tensor with device.tensor(buffer, shape)';
    }
    if (typeof value === 'function') {
        return 'is a function; call it, and pass its result';
    }
    if (classOf(value?.data) && value.width >= 0) {
        return 'is an image; make it a tensor with device.fromImage(image)';
    }
    if (Array.isArray(value) || classOf(value)) {
        return 'is an array; make it a tensor with device.tensor(values, shape)';
    }
    return `is ${shown(value)}, but must be a Tensor or a number`;
};

/**
 * Returns functions that turn arguments into nodes. `nodeOf` returns a tensor's node; undefined for other values.
 * @param {(value: any) => Node | undefined} nodeOf
 */
export const operands = (nodeOf) => {
    const required = (/** @type {string} */ op, /** @type {string} */ name, /** @type {any} */ value) => {
        const node = nodeOf(value);
        if (!node && name === 'this') {
            throw failure(op, `the method was called without its tensor; call it as tensor.${op}(…)`, 'INVALID_ARGUMENT');
        }
        if (!node) {
            throw failure(op, `\`${name}\` ${mixUp(value)}`, 'INVALID_ARGUMENT');
        }
        return usable(op, name, node);
    };
    const usable = (/** @type {string} */ op, /** @type {string} */ name, /** @type {Node} */ node) => {
        if (node.isDisposed) {
            throw failure(op, `\`${name}\` was disposed of by dispose() or at the end of its scope`, 'DISPOSED');
        }
        return node;
    };
    /**
     * The node of an argument of a method whose tensor has the node `self`.
     * @param {string} op
     * @param {string} name
     * @param {any} value
     * @param {{ device: GpuDevice }} self
     */
    const beside = (op, name, value, self) => {
        const node = typeof value === 'number' ? number(self.device, value) : required(op, name, value);
        if (node.device !== self.device) {
            throw failure(op, `\`${name}\` is a tensor of another device`, 'FOREIGN');
        }
        return node;
    };
    return { required, beside };
};
