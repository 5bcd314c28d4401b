// Recording of single nodes.

import { Node, bitsOf } from './node.js';
import { sizeOf, withinLimit } from './shape.js';

/**
 * @import { GpuDevice } from '../device.js'
 * @import { DType, Source } from './node.js'
 * @import { Shape } from './shape.js'
 */

/**
 * Returns a leaf: values of the host, or a buffer on the device.
 * @param {GpuDevice} device
 * @param {Shape} shape
 * @param {Source} source
 * @param {DType} [dtype]
 */
export const leaf = (device, shape, source, dtype) => new Node(device, shape, { source, dtype });

/**
 * Returns a number that is an argument of programs, and no part of their structure.
 * @param {GpuDevice} device
 * @param {number} value
 */
export const number = (device, value) => leaf(device, [], Float32Array.of(value));

/**
 * Returns a number that is part of the structure.
 * @param {GpuDevice} device
 * @param {number} value
 */
export const constant = (device, value) => new Node(device, [], { op: 'constant', parameters: bitsOf([value]) });

/**
 * Returns the numbers from 0 to below `length`.
 * @param {GpuDevice} device
 * @param {number} length
 */
export const range = (device, length) => new Node(device, [length], { op: 'range' });

/**
 * Returns an operation's node. A result without elements needs no operation.
 * @param {string} op
 * @param {Node[]} inputs
 * @param {Shape} shape
 * @param {number[]} [parameters]
 * @param {DType} [dtype]
 */
export const record = (op, inputs, shape, parameters, dtype) => {
    const [{ device }] = inputs;
    return sizeOf(shape) === 0
        ? leaf(device, shape, new Float32Array(0), dtype)
        : new Node(device, withinLimit(op, shape), { op, inputs, parameters, dtype });
};
