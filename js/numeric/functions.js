// Functions of tensors: the module has a line for each, and returns the nodes of its results.

import {
    LEAST_RESIDENT, Tensor, added, enter, failure, optionsOf, record, required, shown, unshaped,
} from '../npm/index.js';
import { record as recorded, signatures } from '#numeric';
import { argument } from './arguments.js';

/**
 * @import { GpuDevice, Node } from '../npm/index.js'
 * @import { Words } from './arguments.js'
 * @typedef {{ name: string, type: string, isOptional: boolean }} Parameter
 * @typedef {{ number: number, owner: string, result: string, positional: Parameter[], options: Parameter[] }} Signature
 */

/**
 * Reads the words of a list of arguments: `name:type`, with a question mark if it may be left out.
 * @returns {Parameter[]}
 */
const parametersOf = (text = '') => text.trim().split(' ').filter(Boolean).map((word) => {
    const [name, type] = word.replace('?', '').split(':');
    return { name, type, isOptional: word.endsWith('?') };
});

/**
 * Name → function. A line is `OWNER RESULT NAME ARGUMENTS; OPTIONS`: see `src/js_numeric/table.rs`.
 * @returns {Map<string, Signature>}
 */
const functionsOf = () => new Map(signatures().trim().split('\n').map((line, number) => {
    const [, owner, result, name, positional, options] = /^(\w+) (\w+) (\w+) ([^;]*)(?:;(.*))?$/.exec(line) ?? [];
    return [name, { number, owner, result, positional: parametersOf(positional), options: parametersOf(options) }];
}));

/** @type {Map<string, Signature> | undefined} */
let functions;

/**
 * Returns the words of whole numbers.
 * @param {Words} numbers
 */
const wordsOf = (numbers) => new Float32Array(Int32Array.from(numbers).buffer);

/**
 * Joins arrays of words after their number.
 * @param {ArrayLike<number>[]} pieces
 */
const listOf = (pieces) => {
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const words = new Float32Array(1 + length);
    words.set(wordsOf([length]));
    pieces.reduce((at, piece) => {
        words.set(piece, at);
        return at + piece.length;
    }, 1);
    return words;
};

/** The arguments of a call as the module reads them. */
class Arguments {
    /** @type {Node[]} */
    inputs = [];
    /** @type {Float32Array[]} */
    #inputs = [];
    /** @type {Float32Array[]} */
    #words = [];
    /** @type {GpuDevice | undefined} */
    #device;

    /**
     * @param {string} op
     * @param {GpuDevice} [device]
     */
    constructor(op, device) {
        this.op = op;
        this.#device = device;
    }

    /** The device of the call, or of its first input. */
    get device() {
        return /** @type {GpuDevice} */ (this.#device);
    }

    /**
     * Adds a node, and returns its index. `isIndices` says that the module looks at the elements that the host has.
     * @param {Node} node
     */
    input(node, isIndices = false) {
        this.#device ??= node.device;
        const { source } = unshaped(node);
        const values = isIndices && source instanceof Float32Array ? source : [];
        this.#inputs.push(listOf([wordsOf(node.shape)]), listOf([values]));
        return this.inputs.push(node) - 1;
    }

    /**
     * Adds an argument: its words, or undefined if it was not given.
     * @param {Words} [words]
     */
    add(words) {
        this.#words.push(wordsOf([words ? 1 : 0]), listOf([wordsOf(words ?? [])]));
    }

    get words() {
        // The first word is the length of the whole list.
        return listOf([listOf(this.#inputs), ...this.#words]).subarray(1);
    }
}

/**
 * Whether a value is a plain object of any realm, and no tensor, for example.
 * @param {any} value
 */
const isPlain = (value) => {
    const { getPrototypeOf } = Object;
    return Object(value) === value && !Array.isArray(value) && !getPrototypeOf(getPrototypeOf(value) ?? Object.prototype);
};

/**
 * Returns the options after the other arguments.
 * @param {string} op
 * @param {Parameter[]} options
 * @param {any} value
 */
const givenOptions = (op, options, value) => {
    if (value !== undefined && !isPlain(value)) {
        throw failure(op, `\`options\` is ${shown(value)}, but must be a plain object`, 'INVALID_ARGUMENT');
    }
    if (value !== undefined && options.length === 0) {
        throw failure(op, 'there are no options', 'INVALID_ARGUMENT');
    }
    return optionsOf(op, value, options.map(({ name }) => name));
};

/**
 * Returns the arguments by their names. Options may stand in the place of an argument that may be left out.
 * @param {string} op
 * @param {{ positional: Parameter[], options: Parameter[] }} signature
 * @param {any[]} values
 * @returns {Record<string, any>}
 */
const named = (op, { positional, options }, values) => {
    /** @type {Record<string, any>} */
    const found = {};
    const rest = [...values];
    for (const { name, isOptional } of positional) {
        found[name] = isOptional && isPlain(rest[0]) ? undefined : rest.shift();
    }
    return { ...found, ...givenOptions(op, options, rest[0]) };
};

/**
 * Begins the call of a function of `self`: a device, the class, or a tensor, which is the first input.
 * @param {string} op
 * @param {any} self
 * @param {{ owner: string }} signature
 */
const begun = (op, self, { owner }) => {
    const call = new Arguments(op, owner === 'device' ? self : undefined);
    if (owner === 'tensor' || owner === 'indices') {
        call.input(required(op, 'this', self), owner === 'indices');
    }
    return call;
};

/**
 * Returns a result as a tensor. Its node is no input's, of which another tensor disposes.
 * @param {Node} node
 * @param {string} result
 * @param {{ inputs: Node[] }} call
 */
const tensorOf = (node, result, { inputs }) => {
    const own = inputs.includes(node) ? record('reshape', [node], node.shape) : node;
    own.dtype = result === 'f32' || result === 'u32' ? result : inputs[0].dtype;
    own.isLeaf && enter(own);
    return new Tensor(own);
};

/**
 * Has the scope dispose of elements that the module made, if they may stay on the device.
 * @param {Node} leaf
 */
const enterLarge = (leaf) => leaf.size >= LEAST_RESIDENT && enter(leaf);

/**
 * Records a function of `self`.
 * @param {string} op
 * @param {any} self
 * @param {any[]} values
 */
export const call = (op, self, values) => {
    functions ??= functionsOf();
    const { number, result, ...own } = /** @type {Signature} */ (functions.get(op));
    const given = named(op, own, values);
    const started = begun(op, self, own);
    for (const parameter of [...own.positional, ...own.options]) {
        started.add(argument(started, parameter, given[parameter.name]));
    }
    const nodes = added(recorded(number, started.words), started.inputs, { device: started.device, enter: enterLarge });
    const tensors = nodes.map((node) => tensorOf(node, result, started));
    return result === 'several' ? tensors : tensors[0];
};
