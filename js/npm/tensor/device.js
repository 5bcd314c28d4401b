// Methods of devices for tensors.

import { GpuDevice, named } from '../core.js';
import { entered, traced } from '../../common/stack.js';
import { valueAndGradients } from './gradients.js';
import { pixelsOf } from './image.js';
import { compiled } from './jit.js';
import * as movement from './movement.js';
import { LEAST_RESIDENT, Resident } from './node.js';
import { NUMERIC, numeric } from './numeric.js';
import { drawn } from './random.js';
import { leaf, number } from './record.js';
import { programsOf } from './run.js';
import { enter, scope } from './scope.js';
import { checkedShape, failure, shown } from './shape.js';
import { Tensor, arrangedTensors, kept, listed, nodeOf, readAll } from './tensor.js';
import { copied, sourceOf } from './values.js';

export { Tensor };

/** Returns the device that a method was called with. */
const deviceOf = (op, device) => {
    if (!(device instanceof GpuDevice)) {
        throw failure(op, `the method was called without its device; call it as device.${op}(…)`, 'INVALID_ARGUMENT');
    }
    return device;
};

/** Returns the nodes of tensors of this device. */
const nodesOf = (op, device, tensors) => {
    const nodes = Array.isArray(tensors) && tensors.length === 0 ? [] : listed(op, tensors);
    if (nodes.some((node) => node.device !== device)) {
        throw failure(op, '`tensors` has a tensor of another device', 'FOREIGN');
    }
    return nodes;
};

const made = (node) => {
    enter(node);
    return new Tensor(node);
};

const filled = (op, device, shape, value) => {
    if (typeof value !== 'number') {
        throw failure(op, `\`value\` is ${shown(value)}, but must be a number`, 'INVALID_ARGUMENT');
    }
    return new Tensor(movement.broadcastTo(number(device, value), checkedShape(op, shape), op));
};

/** Returns a function of parameters and other arguments that returns what `pick` takes of the value and gradients of `f`. */
const differentiated = (op, device, f, pick) => {
    if (typeof f !== 'function') {
        throw failure(op, `\`f\` is ${shown(f)}, but must be a function of tensors`, 'INVALID_ARGUMENT');
    }
    const call = (parameters, ...rest) => entered(call, () => {
        const nodes = [];
        const arrange = arrangedTensors(op, 'parameters', parameters, nodes, device);
        const { value, gradients } = valueAndGradients(op, nodes, { call: (own) => f(arrange(own), ...rest), nodeOf });
        return pick({ value, gradients: arrange(gradients) });
    });
    return call;
};

/** Copies values: many at once to the device, where operations read them. */
const snapshot = (device, values) => {
    try {
        const buffer = values.length >= LEAST_RESIDENT ? device.uploadNow(values) : undefined;
        if (buffer) {
            return new Resident(buffer);
        }
    } catch {} // The run that needs the values says why; it also waits for memory.
    return copied(values);
};

/** Returns a buffer, which must be one of the device. */
const ownBuffer = (device, buffer) => {
    // Those of workers have a handle.
    const isRemote = device.handle || buffer.handle;
    if (isRemote ? device.handle?.link !== buffer.handle?.link : !device.owns(buffer)) {
        throw failure('tensor', '`values` is a DeviceBuffer of another device: copy its values to this one', 'FOREIGN');
    }
    return buffer;
};

/** Methods that record, by functions of the device and their arguments. */
const RECORDING = {
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

    ...Object.fromEntries(NUMERIC.device.map((name) => [name, (device, ...values) => numeric(name, device, values)])),
};
for (const [name, record] of Object.entries(RECORDING)) {
    GpuDevice.prototype[name] = named(GpuDevice, 'device', name, function (...values) {
        return record(this, ...values);
    });
}

/** Methods that compute. */
const COMPUTING = {
    async run(tensors, options) {
        await kept('run', nodesOf('run', deviceOf('run', this), tensors), options);
        return tensors;
    },

    async read(tensors, options) {
        return readAll('read', nodesOf('read', deviceOf('read', this), tensors), options);
    },

    async scope(f) {
        const device = deviceOf('scope', this);
        if (typeof f !== 'function') {
            throw failure('scope', `\`f\` is ${shown(f)}, but must be a function`, 'INVALID_ARGUMENT');
        }
        return scope(device, f, nodeOf);
    },
};
for (const [name, compute] of Object.entries(COMPUTING)) {
    GpuDevice.prototype[name] = traced(compute);
}

/** Makes tensors of random numbers. Its methods know their device, so that they can be called alone, too. */
class RandomTensors {
    constructor(device) {
        for (const name of ['uniform', 'normal']) {
            const draw = (shape, options) => entered(draw, () => {
                const checked = checkedShape(name, shape);
                return made(leaf(device, checked, drawn(name, checked, options)));
            });
            this[name] = draw;
        }
    }
}

Object.defineProperties(GpuDevice.prototype, {
    tensors: {
        get() {
            const { planned, cached } = programsOf(this);
            return { planned, cached };
        },
        configurable: true,
    },
    random: {
        get() {
            return new RandomTensors(this);
        },
        configurable: true,
    },
});
