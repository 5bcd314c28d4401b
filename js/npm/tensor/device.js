// Functions of devices for tensors, of which `GpuDevice` makes methods.

import { entered } from '../../common/stack.js';
import { tableOf } from '../../common/table.js';
import { valueAndGradients } from './gradients.js';
import { pixelsOf } from './image.js';
import { compiled } from './jit.js';
import * as movement from './movement.js';
import { LEAST_RESIDENT, Resident } from './node.js';
import { NUMERIC, numeric } from './numeric.js';
import { drawn } from './random.js';
import { leaf, number } from './record.js';
import { enter, scope } from './scope.js';
import { checkedShape, failure, shown } from './shape.js';
import { Tensor, arrangedTensors, kept, listed, nodeOf, readAll } from './tensor.js';
import { copied, sourceOf } from './values.js';

/**
 * @import { GpuDevice } from '../device.js'
 * @import { DeviceBuffer } from '../device_buffer.js'
 * @import { Node } from './node.js'
 */

/**
 * Returns the nodes of tensors of this device.
 * @param {string} op
 * @param {GpuDevice} device
 * @param {any} tensors
 */
const nodesOf = (op, device, tensors) => {
    const nodes = Array.isArray(tensors) && tensors.length === 0 ? [] : listed(op, tensors);
    if (nodes.some((node) => node.device !== device)) {
        throw failure(op, '`tensors` has a tensor of another device', 'FOREIGN');
    }
    return nodes;
};

/** @param {Node} node */
const made = (node) => {
    enter(node);
    return new Tensor(node);
};

/**
 * @param {string} op
 * @param {GpuDevice} device
 * @param {any} shape
 * @param {any} value
 */
const filled = (op, device, shape, value) => {
    if (typeof value !== 'number') {
        throw failure(op, `\`value\` is ${shown(value)}, but must be a number`, 'INVALID_ARGUMENT');
    }
    return new Tensor(movement.broadcastTo(number(device, value), checkedShape(op, shape), op));
};

/**
 * Returns a function of parameters and other arguments that returns what `pick` takes of the value and gradients of `f`.
 * @param {string} op
 * @param {GpuDevice} device
 * @param {any} f
 * @param {(both: { value: any, gradients: any }) => any} pick
 */
const differentiated = (op, device, f, pick) => {
    if (typeof f !== 'function') {
        throw failure(op, `\`f\` is ${shown(f)}, but must be a function of tensors`, 'INVALID_ARGUMENT');
    }
    /** @type {(parameters: any, ...rest: any[]) => any} */
    const call = (parameters, ...rest) => entered(call, () => {
        /** @type {Node[]} */
        const nodes = [];
        const arrange = arrangedTensors(op, 'parameters', parameters, nodes, device);
        const { value, gradients } = valueAndGradients(op, nodes, { call: (own) => f(arrange(own), ...rest), nodeOf });
        return pick({ value, gradients: arrange(gradients) });
    });
    return call;
};

/**
 * Copies values: many at once to the device, where operations read them.
 * @param {GpuDevice} device
 * @param {Float32Array} values
 */
const snapshot = (device, values) => {
    try {
        const buffer = values.length >= LEAST_RESIDENT ? device.uploadNow(values) : undefined;
        if (buffer) {
            return new Resident(buffer);
        }
    } catch {} // The run that needs the values says why; it also waits for memory.
    return copied(values);
};

/**
 * Returns a buffer, which must be one of the device.
 * @param {GpuDevice} device
 * @param {DeviceBuffer} buffer
 */
const ownBuffer = (device, buffer) => {
    if (!device.owns(buffer)) {
        throw failure('tensor', '`values` is a DeviceBuffer of another device: copy its values to this one', 'FOREIGN');
    }
    return buffer;
};

/**
 * Functions that record.
 * @type {Record<string, (device: GpuDevice, ...values: any[]) => any>}
 */
export const RECORDING = {
    tensor(device, values, shape) {
        const { source, shape: checked, dtype } = sourceOf(values, shape, {
            copy: (array) => snapshot(device, array),
            wrap: (buffer) => new Resident(ownBuffer(device, buffer), false),
        });
        return made(leaf(device, checked, source, dtype));
    },

    full: (device, shape, value) => filled('full', device, shape, value),

    zeros: (device, shape) => filled('zeros', device, shape, 0),

    ones: (device, shape) => filled('ones', device, shape, 1),

    fromImage: (device, image, options) => made(pixelsOf(device, image, options)),

    jit: (device, f) => compiled(device, f),

    valueAndGradients: (device, f) => differentiated('valueAndGradients', device, f, (both) => both),

    gradients: (device, f) => differentiated('gradients', device, f, ({ gradients }) => gradients),

    ...tableOf(NUMERIC.device, (name) => (/** @type {GpuDevice} */ device, /** @type {any[]} */ ...values) =>
        numeric(name, device, values)),
};

/**
 * Functions that compute.
 * @type {Record<string, (device: GpuDevice, ...values: any[]) => Promise<any>>}
 */
export const COMPUTING = {
    async run(device, tensors, options) {
        await kept('run', nodesOf('run', device, tensors), options);
        return tensors;
    },

    async read(device, tensors, options) {
        return readAll('read', nodesOf('read', device, tensors), options);
    },

    async scope(device, f) {
        if (typeof f !== 'function') {
            throw failure('scope', `\`f\` is ${shown(f)}, but must be a function`, 'INVALID_ARGUMENT');
        }
        return scope(device, f, nodeOf);
    },
};

/** Makes tensors of random numbers. Its methods know their device, so that they can be called alone, too. */
export class RandomTensors {
    #device;

    /** @param {GpuDevice} device */
    constructor(device) {
        this.#device = device;
    }

    uniform = this.#drawing('uniform');
    normal = this.#drawing('normal');

    /** @param {'uniform' | 'normal'} name */
    #drawing(name) {
        /** @type {(shape: any, options?: any) => Tensor} */
        const draw = (shape, options) => entered(draw, () => {
            const checked = checkedShape(name, shape);
            return made(leaf(this.#device, checked, drawn(name, checked, options)));
        });
        return draw;
    }
}
