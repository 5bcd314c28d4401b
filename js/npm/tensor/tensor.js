// `Tensor`: values with a shape. Methods record a computation; reading runs it.

import { GpuCommandBatch } from '#computing';
import { ops } from '#ops';
import { classOf } from '../arrays.js';
import { DISPOSE } from '../../common/dispose.js';
import { entered, traced } from '../../common/stack.js';
import { mapped, tableOf } from '../../common/table.js';
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

/**
 * @import { GpuDevice } from '../device.js'
 * @typedef {(x: Node, ...values: any[]) => Node} Recorder a function from a tensor's node and arguments to a node
 */

/**
 * Throws the module's error about wrong parameters, which has their names.
 * @param {string} op
 * @param {any[]} given
 */
const refuse = (op, given) => {
    try {
        GpuCommandBatch.lengthOf(ops.findIndex(([name]) => name === op), [1, ...given]);
    } catch (/** @type {any} */ { message, code }) {
        throw failure(op, message, code);
    }
};

/**
 * Returns an operation's parameters, which must be numbers.
 * @param {string} op
 * @param {any[]} values
 * @param {number} count
 */
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

/**
 * Functions of one tensor and of plain arguments, with the number of these.
 * @type {Record<string, [record: Recorder, count: number]>}
 */
const PLAIN = {
    permute: [movement.permute, 1], transpose: [movement.transpose, 2], reshape: [movement.reshape, 1],
    flatten: [movement.flatten, 0], squeeze: [movement.squeeze, 1], unsqueeze: [movement.unsqueeze, 1],
    broadcastTo: [movement.broadcastTo, 1], slice: [movement.slice, 1], oneHot: [movement.oneHot, 1],
};

/**
 * The recorder of an elementwise operation of the table.
 * @param {string} op
 * @param {number} inputs
 * @param {number} parameters
 * @returns {Recorder}
 */
const elementwiseRecorder = (op, inputs, parameters) => (inputs === 1
    ? (x, ...values) => elementwise.elementwise(op, [x], x.shape, { values: numbers(op, values, parameters) })
    : (x, b) => elementwise.broadcasting(op, op, [['a', x], ['b', beside(op, 'b', b, x)]]));

const { reduce, spread } = elementwise;
const REDUCTIONS = {
    sum: reduce, mean: reduce, variance: spread, std: spread, max: reduce, min: reduce, argmax: reduce, argmin: reduce,
    any: reduce, all: reduce,
};

/**
 * Methods that record a node.
 * @type {Record<string, Recorder>}
 */
const RECORDERS = {
    ...mapped(PLAIN, (_, [record, count]) => (/** @type {Node} */ x, /** @type {any[]} */ ...values) =>
        record(x, ...values.slice(0, count))),

    ...Object.fromEntries(
        ops.filter(([, inputs, , isElementwise]) => isElementwise && inputs < 3)
            .map(([op, inputs, parameters]) => [op, elementwiseRecorder(op, inputs, parameters)]),
    ),

    add: (x, b) => elementwise.broadcasting('add', 'vecAdd', [['a', x], ['b', beside('add', 'b', b, x)]]),

    scale(x, factor) {
        // The factor may change from run to run.
        const [value] = numbers('scale', [factor], 1);
        return elementwise.broadcasting('scale', 'mul', [['x', x], ['factor', number(x.device, value)]]);
    },

    ...tableOf(Object.keys(elementwise.COMPARISONS), (name) => (x, b) =>
        elementwise.comparison(name, x, beside(name, 'b', b, x))),
    not: (x) => elementwise.not(x),
    isNan: (x) => elementwise.isNan(x),
    isFinite: (x) => elementwise.isFinite(x),
    and: (x, b) => elementwise.and(x, beside('and', 'b', b, x)),
    or: (x, b) => elementwise.or(x, beside('or', 'b', b, x)),
    where: (x, a, b) => elementwise.where(x, beside('where', 'a', a, x), beside('where', 'b', b, x)),

    ...mapped(REDUCTIONS, (name, along) => (/** @type {Node} */ x, /** @type {any} */ axis, /** @type {any} */ options) =>
        (Object(axis) === axis && !Array.isArray(axis) ? along(name, x, undefined, axis) : along(name, x, axis, options))),

    ...tableOf(['softmax', 'logSoftmax'], (name) => (x, axis) => linear.softmax(name, x, axis)),

    layerNorm(x, gain, bias, options) {
        const own = (/** @type {string} */ name, /** @type {any} */ value) => beside('layerNorm', name, value, x);
        return linear.norm('layerNorm', x, [['gain', own('gain', gain)], ['bias', own('bias', bias)]], options);
    },

    rmsNorm: (x, gain, options) => linear.norm('rmsNorm', x, [['gain', beside('rmsNorm', 'gain', gain, x)]], options),

    matmul: (x, b) => linear.matmul(x, beside('matmul', 'b', b, x)),

    conv2d: (x, weights, options) => linear.conv2d(x, beside('conv2d', 'weights', weights, x), options),

    concat(x, others, axis = 0) {
        const list = Array.isArray(others) ? others : [others];
        return movement.concat('concat', [x, ...list.map((other) => beside('concat', 'others', other, x))], axis);
    },

    gather: (x, indices, axis = 0) => movement.gather(x, indicesOf('gather', 'indices', indices, x), axis),

    crossEntropy: (x, labels) => linear.crossEntropy(x, indicesOf('crossEntropy', 'labels', labels, x)),

    stopGradient: (x) => stopGradient(x),
};

/**
 * Methods that compute.
 * @type {Record<string, (this: any, options?: any) => Promise<any>>}
 */
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

/**
 * Returns the method of a recorder, which gets the tensor's node.
 * @param {string} name
 * @param {Recorder} record
 */
const recording = (name, record) => {
    /**
     * @this {any}
     * @param {any[]} values
     */
    const call = function (...values) {
        return entered(call, () => new Tensor(record(required(name, 'this', this), ...values)));
    };
    return call;
};

/**
 * Returns a function of `relampago/numeric` as a method.
 * @param {string} name
 */
const extending = (name) => {
    /**
     * @this {any}
     * @param {any[]} values
     */
    const call = function (...values) {
        return entered(call, () => numeric(name, this, values));
    };
    return call;
};

/**
 * Returns a tensor's node; undefined for other values.
 * @type {(value: any) => Node | undefined}
 */
let nodeOf;

export { nodeOf };

export class Tensor {
    static name = 'Tensor';

    #node;
    #isDisposed = false;

    static {
        nodeOf = (value) => (Object(value) === value && #node in value ? value.#usable() : undefined);
        const all = {
            ...mapped(RECORDERS, recording),
            ...mapped(COMPUTING, (_, compute) => traced(compute)),
            ...tableOf(NUMERIC.tensor, extending),
        };
        Object.assign(this.prototype, all, { expandDims: all.unsqueeze, keep: all.run });
        Object.assign(this, tableOf(NUMERIC.class, extending));
    }

    /** @param {Node} node */
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

    /** For `using`. */
    [DISPOSE]() {
        this.dispose();
    }

    toString() {
        return `Tensor ${text(this.#node.shape)}`;
    }

    /** The text that the consoles of Node, Deno and Bun print. */
    [Symbol.for('nodejs.util.inspect.custom')]() {
        return `${this} ${this.dtype}, ${this.#usable().place}`;
    }

    /**
     * Arithmetic signs would make a number of a tensor.
     * @param {string} hint
     */
    [Symbol.toPrimitive](hint) {
        if (hint === 'string') {
            return this.toString();
        }
        throw failure('Tensor', 'a tensor is no number; use its methods, or await its item()', 'INVALID_ARGUMENT');
    }

    /** @param {any} withRespectTo */
    gradients(withRespectTo) {
        return entered(Tensor.prototype.gradients, () => {
            const loss = required('gradients', 'this', this);
            /** @type {Node[]} */
            const nodes = [];
            const arrange = arrangedTensors('gradients', 'withRespectTo', withRespectTo, nodes, loss.device);
            return arrange(gradientsOf('gradients', loss, nodes));
        });
    }

    /** @param {any} k */
    topK(k) {
        return entered(Tensor.prototype.topK, () => {
            const { values, indices } = movement.topK(required('topK', 'this', this), k);
            return { values: new Tensor(values), indices: new Tensor(indices) };
        });
    }

    /** @param {any} tensors */
    static stack(tensors, axis = 0) {
        return entered(Tensor.stack, () => new Tensor(movement.stack(listed('stack', tensors), axis)));
    }

    /** @param {any} tensors */
    static concat(tensors, axis = 0) {
        return entered(Tensor.concat, () => new Tensor(movement.concat('concat', listed('concat', tensors), axis)));
    }
}

/** The device of no tensor. */
const NOWHERE = /** @type {GpuDevice} */ (/** @type {unknown} */ (undefined));

const GONE = new Node(NOWHERE, [], {});

const { required, beside } = operands((value) => nodeOf(value));

export { beside, required };

/**
 * Returns the nodes of a list of tensors of one device.
 * @param {string} op
 * @param {any} tensors
 * @returns {Node[]}
 */
export const listed = (op, tensors) => {
    if (!Array.isArray(tensors) || tensors.length === 0) {
        throw failure(op, `\`tensors\` is ${shown(tensors)}, but must be an array of tensors`, 'INVALID_ARGUMENT');
    }
    const nodes = tensors.map((tensor, at) => required(op, `tensors[${at}]`, tensor));
    return nodes.map((_, at) => beside(op, `tensors[${at}]`, tensors[at], nodes[0]));
};

/** The typed arrays that indices may be. */
const INDICES = ['Uint32Array', 'Float32Array'];

/**
 * Returns the node of an argument that has indices.
 * @param {string} op
 * @param {string} what
 * @param {any} indices
 * @param {{ device: GpuDevice }} x
 */
export const indicesOf = (op, what, indices, x) => {
    if (typeof indices !== 'number' && !Array.isArray(indices) && !INDICES.includes(classOf(indices) ?? '')) {
        return beside(op, what, indices, x);
    }
    const { source, shape } = sourceOf(indices, undefined, { op, what });
    return leaf(x.device, shape, source);
};

/**
 * Computes nodes and returns their values, each in an array of its type.
 * @param {string} op
 * @param {Node[]} nodes
 * @param {any} options
 */
export const readAll = async (op, nodes, options) => {
    const all = await abortable(op, options, (known) => read(nodes, known));
    return all.map((values, at) => arrayOf(nodes[at].dtype, values));
};

/**
 * Computes nodes that stay on the device. New buffers belong to the innermost scope.
 * @param {string} op
 * @param {Node[]} nodes
 * @param {any} [options]
 */
export const kept = async (op, nodes, options) => {
    const computed = nodes.filter((node) => !node.isLeaf);
    await abortable(op, options, (known) => keep(nodes, known));
    computed.forEach(enter);
};

/**
 * Appends the nodes of a tree of tensors, an argument of an operation on a device, to `nodes`. Returns a function that
 * makes a tree of tensors of other nodes.
 * @param {string} op
 * @param {string} what
 * @param {any} tree
 * @param {Node[]} nodes
 * @param {GpuDevice} [device]
 * @returns {(others: Node[]) => any}
 */
export const arrangedTensors = (op, what, tree, nodes, device) => {
    // Without a device, all tensors must be on that of the first one.
    const argument = (/** @type {any} */ one, /** @type {{ device: GpuDevice }} */ own) =>
        beside(op, what, one, { device: device ?? nodes[0]?.device ?? own.device });
    const arrange = arranged(tree, nodes, {
        nodeOf(one) {
            const own = nodeOf(one);
            return own && argument(one, own);
        },
        failed: (reason, one) => {
            const has = reason === 'cycle' ? 'contains itself' : `has ${shown(one)}`;
            const needed = 'must be a tensor, or arrays and objects of tensors';
            return failure(op, `\`${what}\` ${has}, but ${needed}`, 'INVALID_ARGUMENT');
        },
    });
    return (others) => arrange(others.map((node) => new Tensor(node)));
};

/**
 * @param {string} op
 * @param {any} tensor
 * @param {any} options
 */
const valuesOf = async (op, tensor, options) => {
    const node = required(op, 'this', tensor);
    const [values] = await readAll(op, [node], options);
    return { node, values };
};
