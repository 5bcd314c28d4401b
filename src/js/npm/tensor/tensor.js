// `Tensor`: values with a shape. Methods record what is to be computed; reading runs it.

import { GpuDevice, ops } from '../core.js';
import * as elementwise from './elementwise.js';
import * as linear from './linear.js';
import * as movement from './movement.js';
import { Node, Resident } from './node.js';
import { operands } from './operand.js';
import { leaf, number } from './record.js';
import { keep, programsOf, read } from './run.js';
import { enter, scope } from './scope.js';
import { checkedShape, failure, shown, text } from './shape.js';
import { nested, sourceOf } from './values.js';

let nodeOf;

export class Tensor {
    #node;
    #isDisposed = false;

    static {
        nodeOf = (value) => (Object(value) === value && #node in value ? value.#usable() : undefined);
    }

    constructor(node) {
        if (!(node instanceof Node)) {
            throw failure('Tensor', 'a tensor is made by device.tensor(values, shape)', 'INVALID_ARGUMENT');
        }
        this.#node = node;
    }

    /** A disposed tensor's node may still serve others; it stands for a leaf that was disposed of. */
    #usable() {
        return this.#isDisposed ? GONE : this.#node;
    }

    get shape() {
        return [...this.#node.shape];
    }

    get size() {
        return this.#node.size;
    }

    get rank() {
        return this.#node.shape.length;
    }

    get device() {
        return this.#node.device;
    }

    dispose() {
        this.#isDisposed = true;
        this.#node.dispose();
    }

    toString() {
        return `Tensor ${text(this.#node.shape)}`;
    }

    /** Arithmetic signs would make a number of a tensor. */
    [Symbol.toPrimitive](hint) {
        if (hint === 'string') {
            return this.toString();
        }
        throw failure('Tensor', 'a tensor is no number; use its methods, or await its item()', 'INVALID_ARGUMENT');
    }

    static stack(tensors, axis = 0) {
        return new Tensor(movement.stack(listed('stack', tensors), axis));
    }

    static concat(tensors, axis = 0) {
        return new Tensor(movement.concat('concat', listed('concat', tensors), axis));
    }
}

const GONE = new Node(undefined, [], {});

const { required, beside } = operands((value) => nodeOf(value));

/** Returns the nodes of a list of tensors of one device. */
const listed = (op, tensors) => {
    if (!Array.isArray(tensors) || tensors.length === 0) {
        throw failure(op, `\`tensors\` is ${shown(tensors)}, but must be an array of tensors`, 'INVALID_ARGUMENT');
    }
    const nodes = tensors.map((tensor, at) => required(op, `tensors[${at}]`, tensor));
    return nodes.map((_, at) => beside(op, `tensors[${at}]`, tensors[at], nodes[0]));
};

/** Gives the class a method whose function gets the tensor's node, and returns a node. */
const method = (name, record) => {
    Tensor.prototype[name] = function (...values) {
        return new Tensor(record(required(name, 'this', this), ...values));
    };
};

/** Functions of one tensor and of plain arguments. */
const PLAIN = ['permute', 'transpose', 'reshape', 'flatten', 'squeeze', 'unsqueeze', 'broadcastTo', 'slice', 'oneHot'];
PLAIN.forEach((name) => method(name, (x, ...values) => movement[name](x, ...values)));
Tensor.prototype.expandDims = Tensor.prototype.unsqueeze;

// The elementwise operations of the table, by their names.
for (const [op, inputs, parameters, isElementwise] of ops) {
    if (isElementwise && inputs === 1) {
        method(op, (x, ...values) => elementwise.elementwise(op, [x], x.shape, { values: numbers(op, values, parameters) }));
    }
    if (isElementwise && inputs === 2) {
        method(op, (x, b) => elementwise.broadcasting(op, op, [['a', x], ['b', beside(op, 'b', b, x)]]));
    }
}

/** Returns an operation's parameters, which must be numbers. */
const numbers = (op, values, count) => {
    const given = values.slice(0, count);
    for (let at = 0; at < count; at++) {
        if (typeof given[at] !== 'number') {
            throw failure(op, `parameter ${at + 1} is ${shown(given[at])}, but must be a number`, 'INVALID_ARGUMENT');
        }
    }
    if (op === 'clip' && !(given[0] <= given[1])) {
        throw failure(op, `\`min\` is ${given[0]}, but must be at most \`max\` (${given[1]}), and neither may be NaN`, 'INVALID_ARGUMENT');
    }
    return given;
};

method('add', (x, b) => elementwise.broadcasting('add', 'vecAdd', [['a', x], ['b', beside('add', 'b', b, x)]]));
method('scale', (x, factor) => {
    // The factor may change from run to run.
    const [value] = numbers('scale', [factor], 1);
    return elementwise.broadcasting('scale', 'mul', [['x', x], ['factor', number(x.device, value)]]);
});

for (const name of Object.keys(elementwise.COMPARISONS)) {
    method(name, (x, b) => elementwise.comparison(name, x, beside(name, 'b', b, x)));
}
method('not', (x) => elementwise.not(x));
for (const name of ['and', 'or']) {
    method(name, (x, b) => elementwise[name](x, beside(name, 'b', b, x)));
}
method('where', (x, a, b) => elementwise.where(x, beside('where', 'a', a, x), beside('where', 'b', b, x)));

for (const name of ['sum', 'mean', 'max', 'min', 'argmax', 'argmin', 'any', 'all']) {
    method(name, (x, axis, options) =>
        Object(axis) === axis && !Array.isArray(axis)
            ? elementwise.reduce(name, x, undefined, axis)
            : elementwise.reduce(name, x, axis, options));
}

for (const name of ['softmax', 'logSoftmax']) {
    method(name, (x, axis) => linear.softmax(name, x, axis));
}
method('layerNorm', (x, gain, bias, options) => {
    const vectors = [['gain', gain], ['bias', bias]].map(([name, value]) => [name, beside('layerNorm', name, value, x)]);
    return linear.norm('layerNorm', x, vectors, options);
});
method('rmsNorm', (x, gain, options) => linear.norm('rmsNorm', x, [['gain', beside('rmsNorm', 'gain', gain, x)]], options));
method('matmul', (x, b) => linear.matmul(x, beside('matmul', 'b', b, x)));
method('conv2d', (x, weights, options) => linear.conv2d(x, beside('conv2d', 'weights', weights, x), options));
method('concat', (x, others, axis = 0) => {
    const list = Array.isArray(others) ? others : [others];
    return movement.concat('concat', [x, ...list.map((other) => beside('concat', 'others', other, x))], axis);
});
method('gather', (x, indices, axis = 0) => movement.gather(x, indicesOf(indices, x, axis), axis));

/** Returns the node of indices; those that are numbers are checked at once. */
const indicesOf = (indices, x, axis) => {
    if (typeof indices !== 'number' && !Array.isArray(indices)) {
        return beside('gather', 'indices', indices, x);
    }
    const { source, shape } = sourceOf(indices);
    const count = x.shape.at(axis);
    const wrong = source.find((index) => !Number.isInteger(index) || index < 0 || index >= count);
    if (wrong !== undefined) {
        throw failure('gather', `index ${wrong} is not on axis ${axis}, which has ${count} elements`, 'INVALID_ARGUMENT');
    }
    return leaf(x.device, shape, source);
};

Object.assign(Tensor.prototype, {
    topK(k) {
        const { values, indices } = movement.topK(required('topK', 'this', this), k);
        return { values: new Tensor(values), indices: new Tensor(indices) };
    },

    async data(options) {
        const node = required('data', 'this', this);
        const [values] = await read(node.device, [node], options);
        return values;
    },

    async item(options) {
        const node = required('item', 'this', this);
        if (node.size !== 1) {
            throw failure('item', `shape ${text(node.shape)} has ${node.size} elements, but must have one; use data()`);
        }
        return (await this.data(options))[0];
    },

    async array(options) {
        const { shape } = required('array', 'this', this);
        return nested(await this.data(options), shape);
    },

    async run(options) {
        const node = required('run', 'this', this);
        await kept(node.device, [node], options);
        return this;
    },
});
Tensor.prototype.keep = Tensor.prototype.run;

if (Symbol.dispose) {
    Tensor.prototype[Symbol.dispose] = function () {
        this.dispose();
    };
}

/** Computes nodes that stay on the device. What was not there before belongs to the innermost scope. */
const kept = async (device, nodes, options) => {
    const computed = nodes.filter((node) => !node.isLeaf);
    await keep(device, nodes, options);
    computed.forEach(enter);
};

/** Returns the nodes of tensors of this device. */
const nodesOf = (op, device, tensors) => {
    const nodes = tensors.length > 0 ? listed(op, tensors) : [];
    if (nodes.some((node) => node.device !== device)) {
        throw failure(op, '`tensors` has a tensor of another device', 'FOREIGN');
    }
    return nodes;
};

const made = (device, shape, source) => {
    const node = leaf(device, shape, source);
    enter(node);
    return new Tensor(node);
};

const filled = (op, device, shape, value) => {
    if (typeof value !== 'number') {
        throw failure(op, `\`value\` is ${shown(value)}, but must be a number`, 'INVALID_ARGUMENT');
    }
    return new Tensor(movement.broadcastTo(number(device, value), checkedShape(op, shape), op));
};

Object.assign(GpuDevice.prototype, {
    tensor(values, shape) {
        const resident = (buffer) => new Resident(buffer, false);
        const { source, shape: checked } = sourceOf(values, shape, resident);
        return made(this, checked, source);
    },

    full(shape, value) {
        return filled('full', this, shape, value);
    },

    zeros(shape) {
        return filled('zeros', this, shape, 0);
    },

    ones(shape) {
        return filled('ones', this, shape, 1);
    },

    async run(tensors, options) {
        await kept(this, nodesOf('run', this, tensors), options);
        return tensors;
    },

    async read(tensors, options) {
        return read(this, nodesOf('read', this, tensors), options);
    },

    scope(f) {
        return scope(this, f, (value) => nodeOf(value));
    },
});

Object.defineProperty(GpuDevice.prototype, 'tensors', {
    get() {
        const { planned, cached } = programsOf(this);
        return { planned, cached };
    },
    configurable: true,
});
