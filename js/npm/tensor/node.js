// The nodes of a graph, which tensors record as plain JavaScript objects. Nothing here calls the module.

import { ops } from '#ops';
import { RelampagoError } from '../../common/error.js';
import { sizeOf } from './shape.js';

/**
 * @import { GpuDevice } from '../device.js'
 * @import { DeviceBuffer } from '../device_buffer.js'
 * @import { Shape } from './shape.js'
 */

/**
 * The source of a leaf: values of the host, or a buffer. A leaf that was disposed of has none.
 * @typedef {Float32Array | Resident | typeof PARAMETER | undefined} Source
 */

/** @typedef {'f32' | 'u32' | 'bool'} DType */

/** A buffer on the device that several nodes may share; it is released when the last of them is disposed of. */
export class Resident {
    #owners;

    /**
     * A buffer of the caller's own is never released here.
     * @param {DeviceBuffer} buffer
     */
    constructor(buffer, isOwn = true) {
        this.buffer = buffer;
        this.#owners = isOwn ? 1 : Infinity;
    }

    retain() {
        this.#owners += 1;
        return this;
    }

    release() {
        this.#owners -= 1;
        if (this.#owners === 0) {
            this.buffer.dispose();
        }
    }
}

/** Elements from which values that may be used again move to the device. */
export const LEAST_RESIDENT = 1024;

/** The source of a leaf that stands for an argument while a function is recorded. */
export const PARAMETER = Symbol('parameter');

/**
 * The parameters of an operation that has none.
 * @type {number[]}
 */
const NONE = [];

/** An operation that was recorded, or a leaf: values of the host, or a buffer on the device. */
export class Node {
    /** @type {string | undefined} */
    #signature;
    /**
     * Whether the elements are those of an image, which converts again for each use until it stays on the device.
     * @type {boolean | undefined}
     */
    isImage;
    /** How often a leaf's values went to the device. */
    uses = 0;
    /**
     * The running upload of a leaf's values, if any.
     * @type {Promise<void> | undefined}
     */
    uploading;

    /**
     * `source` is that of a leaf. Parameters are whole numbers of 32 bits.
     * @param {GpuDevice} device
     * @param {Shape} shape
     * @param {{ op?: string, inputs?: Node[], parameters?: number[], source?: Source, dtype?: DType }} rest
     */
    constructor(device, shape, { op = 'leaf', inputs = [], parameters = NONE, source, dtype = 'f32' }) {
        this.device = device;
        this.shape = shape;
        this.op = op;
        this.inputs = inputs;
        this.parameters = parameters;
        this.source = source;
        this.dtype = dtype;
        this.size = sizeOf(shape);
    }

    /** Describes the operation, without its inputs. Leaves differ by their shapes alone. */
    get signature() {
        this.#signature ??= `${this.op}[${this.shape}]${this.parameters}`;
        return this.#signature;
    }

    get isLeaf() {
        return this.op === 'leaf';
    }

    /** Where the elements are, as texts for people have it. */
    get place() {
        if (!this.isLeaf) {
            return 'not computed yet';
        }
        if (this.source === PARAMETER) {
            return 'an argument';
        }
        return this.isDisposed ? 'disposed of' : `on the ${this.source instanceof Resident ? 'device' : 'host'}`;
    }

    get isDisposed() {
        return this.isLeaf && this.source === undefined;
    }

    /**
     * Makes a leaf of this node, and releases its inputs.
     * @param {Source} source
     */
    settle(source) {
        this.op = 'leaf';
        this.inputs = [];
        this.parameters = NONE;
        this.#signature = undefined;
        this.source = source;
    }

    /** Gives back a leaf's buffer. Computations recorded with it cannot run any more. */
    dispose() {
        if (this.source instanceof Resident) {
            this.source.release();
        }
        if (this.isLeaf) {
            this.source = undefined;
        }
    }
}

/**
 * Returns all nodes that results need, each after its inputs. It does not recurse, since graphs may be deeper than the
 * call stack.
 * @param {Node[]} results
 */
export const ordered = (results) => {
    /** @type {Set<Node>} */
    const order = new Set();
    const open = [...results].reverse();
    while (open.length > 0) {
        const { length } = open;
        const node = open[length - 1];
        for (let at = order.has(node) ? 0 : node.inputs.length; at > 0; at--) {
            const input = node.inputs[at - 1];
            order.has(input) || open.push(input);
        }
        if (open.length === length) {
            order.add(node);
            open.pop();
        }
    }
    return [...order];
};

/**
 * Refuses leaves without values: disposed leaves and parameters.
 * @param {Node[]} order
 */
export const requireSources = (order) => {
    const gone = order.find((node) => node.isDisposed);
    if (gone) {
        throw new RelampagoError('DISPOSED', `a tensor of shape [${gone.shape.join(', ')}] that is needed was disposed of`);
    }
    if (order.some(({ source }) => source === PARAMETER)) {
        const message = 'a function that device.jit records must return tensors, and not compute them';
        throw new RelampagoError('INVALID_ARGUMENT', message);
    }
};

/** The operations of nodes in the order in which the module knows them; all others are elementwise. */
const KINDS = [
    'leaf', '', 'constant', 'range', 'view', 'reshape', 'reduce', 'softmax', 'logSoftmax', 'layerNorm', 'rmsNorm',
    'matmul', 'conv2d', 'concat', 'gather', 'topK', 'take', 'unpackBytes', 'packBytes',
    'stopGradient', 'cumsum', 'cumprod', 'argsort', 'fft', 'scatter', 'sort',
];

/**
 * Returns the bits of numbers as f32, which are parameters of operations.
 * @param {Iterable<number>} numbers
 */
export const bitsOf = (numbers) => [...new Int32Array(Float32Array.from(numbers).buffer)];

/**
 * Returns a graph as `planGraph` takes it, in an array of words of 32 bits: the results' indices among the nodes; and for
 * each node its operation, its shape, the indices of its inputs and its parameters. Lists follow their lengths.
 * @param {Node[]} order
 * @param {Node[]} results
 */
export const described = (order, results) => {
    const places = new Map(order.map((node, place) => [node, place]));
    const placesOf = (/** @type {Node[]} */ nodes) => [nodes.length, ...nodes.map((node) => /** @type {number} */ (places.get(node)))];
    const words = placesOf(results);
    for (const { op, shape, inputs, parameters } of order) {
        const kind = KINDS.indexOf(op);
        // Those of the table have their index as the first parameter.
        const all = kind < 0 ? [ops.findIndex(([name]) => name === op), ...parameters] : parameters;
        words.push(kind < 0 ? 1 : kind, shape.length, ...shape, ...placesOf(inputs), all.length, ...all);
    }
    return new Float32Array(Int32Array.from(words).buffer);
};

/**
 * Returns the nodes of a list of indices, after which words describe nodes that are added to a graph: see `described`.
 * `order` has the nodes of the graph. A leaf among them has the bits of its elements as parameters; `enter` is called with it.
 * @param {Float32Array} words
 * @param {Node[]} order
 * @param {{ device?: GpuDevice, enter?: (leaf: Node) => void }} [options]
 */
export const added = (words, order, { device = order[0].device, enter } = {}) => {
    const nodes = [...order];
    let at = 0;
    const list = () => {
        const start = at + 1;
        at = start + words[at];
        return words.slice(start, at);
    };
    const results = [...list()];
    while (at < words.length) {
        const kind = words[at++];
        const [shape, places, parameters] = [[...list()], [...list()], list()];
        if (kind === 0 || sizeOf(shape) === 0) {
            const leaf = new Node(device, shape, { source: kind === 0 ? new Float32Array(parameters.buffer) : new Float32Array(0) });
            nodes.push(leaf);
            enter?.(leaf);
            continue;
        }
        const all = [...new Int32Array(parameters.buffer)];
        const op = kind === 1 ? ops[Number(all.shift())][0] : KINDS[kind];
        nodes.push(new Node(device, shape, { op, inputs: places.map((place) => nodes[place]), parameters: all }));
    }
    return results.map((place) => nodes[place]);
};

/**
 * Describes the graph of results; graphs of the same structure have the same description.
 * @param {Node[]} order
 * @param {Node[]} results
 */
export const structure = (order, results) => {
    /** @type {Map<Node, number>} */
    const places = new Map();
    let key = '';
    for (const node of order) {
        key += node.signature;
        for (const input of node.inputs) {
            key += `<${places.get(input)}`;
        }
        key += ';';
        places.set(node, places.size);
    }
    return `${key}${results.map((node) => places.get(node))}`;
};
