// `Tensor`: values with a shape. Methods record a computation; reading runs it.

import { GpuCommandBatch, classOf, ops } from '../core.js';
import { entered, traced } from '../../common/stack.js';
import { arrayOf, elementOf } from './dtype.js';
import * as elementwise from './elementwise.js';
import { gradientsOf, stopGradient } from './gradients.js';
import { imageOf } from './image.js';
import * as linear from './linear.js';
import * as movement from './movement.js';
import { Node } from './node.js';
import { NUMERIC, numeric } from './numeric.js';
import { operands } from './operand.js';
import { abortable } from './options.js';
import { leaf, number } from './record.js';
import { keep, read } from './run.js';
import { enter } from './scope.js';
import { failure, shown, text } from './shape.js';
import { arranged } from './tree.js';
import { nested, sourceOf } from './values.js';

let nodeOf;

export { nodeOf };

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

    get dtype() {
        return this.#node.dtype;
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

    /** The text that the consoles of Node, Deno and Bun print. */
    [Symbol.for('nodejs.util.inspect.custom')]() {
        return `${this} ${this.dtype}, ${this.#usable().place}`;
    }

    /** Arithmetic signs would make a number of a tensor. */
    [Symbol.toPrimitive](hint) {
        if (hint === 'string') {
            return this.toString();
        }
        throw failure('Tensor', 'a tensor is no number; use its methods, or await its item()', 'INVALID_ARGUMENT');
    }

    static stack(tensors, axis = 0) {
        return entered(Tensor.stack, () => new Tensor(movement.stack(listed('stack', tensors), axis)));
    }

    static concat(tensors, axis = 0) {
        return entered(Tensor.concat, () => new Tensor(movement.concat('concat', listed('concat', tensors), axis)));
    }
}

Object.defineProperty(Tensor, 'name', { value: 'Tensor' });

const GONE = new Node(undefined, [], {});

const { required, beside } = operands((value) => nodeOf(value));

export { beside, required };

/** Returns the nodes of a list of tensors of one device. */
export const listed = (op, tensors) => {
    if (!Array.isArray(tensors) || tensors.length === 0) {
        throw failure(op, `\`tensors\` is ${shown(tensors)}, but must be an array of tensors`, 'INVALID_ARGUMENT');
    }
    const nodes = tensors.map((tensor, at) => required(op, `tensors[${at}]`, tensor));
    return nodes.map((_, at) => beside(op, `tensors[${at}]`, tensors[at], nodes[0]));
};

/** Gives the class a method whose function gets the tensor's node, and returns a node. */
const method = (name, record) => {
    const call = function (...values) {
        return entered(call, () => new Tensor(record(required(name, 'this', this), ...values)));
    };
    Tensor.prototype[name] = call;
};

/** Functions of one tensor and of plain arguments, with the number of these. */
const PLAIN = {
    permute: 1, transpose: 2, reshape: 1, flatten: 0, squeeze: 1, unsqueeze: 1, broadcastTo: 1, slice: 1, oneHot: 1,
};
for (const [name, count] of Object.entries(PLAIN)) {
    method(name, (x, ...values) => movement[name](x, ...values.slice(0, count)));
}
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

/** Throws the module's error about wrong parameters, which has their names. */
const refuse = (op, given) => {
    try {
        GpuCommandBatch.lengthOf(ops.findIndex(([name]) => name === op), [1, ...given]);
    } catch ({ message, code }) {
        throw failure(op, message, code);
    }
};

/** Returns an operation's parameters, which must be numbers. */
const numbers = (op, values, count) => {
    const given = values.slice(0, count);
    for (let at = 0; at < count; at++) {
        typeof given[at] === 'number' || refuse(op, given);
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
for (const name of ['not', 'isNan', 'isFinite']) {
    method(name, (x) => elementwise[name](x));
}
for (const name of ['and', 'or']) {
    method(name, (x, b) => elementwise[name](x, beside(name, 'b', b, x)));
}
method('where', (x, a, b) => elementwise.where(x, beside('where', 'a', a, x), beside('where', 'b', b, x)));

const { reduce, spread } = elementwise;
const REDUCTIONS = {
    sum: reduce, mean: reduce, variance: spread, std: spread, max: reduce, min: reduce, argmax: reduce, argmin: reduce,
    any: reduce, all: reduce,
};
for (const [name, along] of Object.entries(REDUCTIONS)) {
    method(name, (x, axis, options) =>
        Object(axis) === axis && !Array.isArray(axis) ? along(name, x, undefined, axis) : along(name, x, axis, options));
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
method('gather', (x, indices, axis = 0) => movement.gather(x, indicesOf('gather', 'indices', indices, x), axis));
method('crossEntropy', (x, labels) => linear.crossEntropy(x, indicesOf('crossEntropy', 'labels', labels, x)));
method('stopGradient', (x) => stopGradient(x));

for (const name of NUMERIC.tensor) {
    Tensor.prototype[name] = function call(...values) {
        return entered(call, () => numeric(name, this, values));
    };
}
for (const name of NUMERIC.class) {
    Tensor[name] = function call(...values) {
        return entered(call, () => numeric(name, Tensor, values));
    };
}

/** The typed arrays that indices may be. */
const INDICES = ['Uint32Array', 'Float32Array'];

/** Returns the node of an argument that has indices. */
export const indicesOf = (op, what, indices, x) => {
    if (typeof indices !== 'number' && !Array.isArray(indices) && !INDICES.includes(classOf(indices))) {
        return beside(op, what, indices, x);
    }
    const { source, shape } = sourceOf(indices, undefined, { op, what });
    return leaf(x.device, shape, source);
};

/** Computes nodes and returns their values, each in an array of its type. */
export const readAll = async (op, nodes, options) => {
    const all = await abortable(op, options, (known) => read(nodes, known));
    return all.map((values, at) => arrayOf(nodes[at].dtype, values));
};

/** Computes nodes that stay on the device. New buffers belong to the innermost scope. */
export const kept = async (op, nodes, options) => {
    const computed = nodes.filter((node) => !node.isLeaf);
    await abortable(op, options, (known) => keep(nodes, known));
    computed.forEach(enter);
};

/**
 * Appends the nodes of a tree of tensors, an argument of an operation on a device, to `nodes`. Returns a function that
 * makes a tree of tensors of other nodes.
 */
export const arrangedTensors = (op, what, tree, nodes, device) => {
    // Without a device, all tensors must be on that of the first one.
    const argument = (one) => beside(op, what, one, { device: device ?? nodes[0]?.device ?? nodeOf(one).device });
    const arrange = arranged(tree, nodes, {
        nodeOf: (one) => (nodeOf(one) ? argument(one) : undefined),
        failed: (reason, one) => {
            const has = reason === 'cycle' ? 'contains itself' : `has ${shown(one)}`;
            const needed = 'must be a tensor, or arrays and objects of tensors';
            return failure(op, `\`${what}\` ${has}, but ${needed}`, 'INVALID_ARGUMENT');
        },
    });
    return (others) => arrange(others.map((node) => new Tensor(node)));
};

Tensor.prototype.gradients = function gradients(withRespectTo) {
    return entered(gradients, () => {
        const loss = required('gradients', 'this', this);
        const nodes = [];
        const arrange = arrangedTensors('gradients', 'withRespectTo', withRespectTo, nodes, loss.device);
        return arrange(gradientsOf('gradients', loss, nodes));
    });
};

Tensor.prototype.topK = function topK(k) {
    return entered(topK, () => {
        const { values, indices } = movement.topK(required('topK', 'this', this), k);
        return { values: new Tensor(values), indices: new Tensor(indices) };
    });
};

const valuesOf = async (op, tensor, options) => {
    const node = required(op, 'this', tensor);
    const [values] = await readAll(op, [node], options);
    return { node, values };
};

/** Methods that compute. */
const COMPUTING = {
    async data(options) {
        return (await valuesOf('data', this, options)).values;
    },

    async item(options) {
        const node = required('item', 'this', this);
        if (node.size !== 1) {
            throw failure('item', `shape ${text(node.shape)} has ${node.size} elements, but must have one; use data()`);
        }
        const { values } = await valuesOf('item', this, options);
        return elementOf(node.dtype)(values[0]);
    },

    async array(options) {
        const { node, values } = await valuesOf('array', this, options);
        return nested(values, node.shape, elementOf(node.dtype));
    },

    async toImageData(options) {
        const node = required('toImageData', 'this', this);
        return imageOf(node, options, async (words, signal) => (await read([words], { signal }))[0]);
    },

    async run(options) {
        const node = required('run', 'this', this);
        await kept('run', [node], options);
        return this;
    },
};
for (const [name, compute] of Object.entries(COMPUTING)) {
    Tensor.prototype[name] = traced(compute);
}
Tensor.prototype.keep = Tensor.prototype.run;

if (Symbol.dispose) {
    Tensor.prototype[Symbol.dispose] = function () {
        this.dispose();
    };
}
