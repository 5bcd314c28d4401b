// Functions of tensors that record once for each combination of shapes, and then run as one program.

import { traced } from '../../common/stack.js';
import { Node, PARAMETER, ordered } from './node.js';
import { leaf } from './record.js';
import { keepRecorded, recordingOf } from './run.js';
import { enter, unscoped } from './scope.js';
import { failure, shown } from './shape.js';
import { Tensor, beside, kept, nodeOf } from './tensor.js';
import { arranged } from './tree.js';

/**
 * @import { GpuDevice } from '../device.js'
 * @import { Recording } from './run.js'
 * @import { Reason } from './tree.js'
 */

/**
 * A recording, the function that arranges its results, and for each leaf the index of its parameter.
 * @typedef {Recording & { arrange: (values: any[]) => any, places: number[] }} Jitted
 */

/** Recordings that a function keeps, one for each structure of shapes; the oldest one goes first. */
const MAX_RECORDINGS = 64;

/** @type {Record<Reason, (value: any) => string>} */
const FAILURES = {
    cycle: () => 'an array or object that contains itself',
    promise: () => 'a Promise, but must not be async: it only records',
    value: (value) => `${shown(value)}, but must return a tensor, or arrays and objects of tensors`,
};

/**
 * Appends the nodes of a function's result to `nodes`; returns the function that puts tensors in their places.
 * @param {any} result
 * @param {Node[]} nodes
 */
const arrangedResult = (result, nodes) => arranged(result, nodes, {
    nodeOf,
    failed: (reason, value) => failure('jit', `the function returned ${FAILURES[reason](value)}`, 'INVALID_ARGUMENT'),
});

/**
 * Whether a value is a tensor or a number, or an array of numbers, which is refused.
 * @param {any} value
 */
const isArgument = (value) =>
    typeof value === 'number' || nodeOf(value) || (Array.isArray(value) && value.some((one) => typeof one === 'number'));

/**
 * Appends the nodes of arguments to `nodes`. A number stands for a tensor without axes, as an argument or in an object.
 * Returns a function that puts other values in their places.
 * @param {GpuDevice} device
 * @param {any[]} args
 * @param {Node[]} nodes
 * @returns {(values: any[]) => any[]}
 */
const arrangedArguments = (device, args, nodes) => {
    const parts = args.map((value, at) => {
        const argument = (/** @type {any} */ one) => beside('jit', `args[${at}]`, one, { device });
        return arranged(value, nodes, {
            nodeOf: (one) => (isArgument(one) ? argument(one) : undefined),
            failed: (reason, one) => {
                reason === 'cycle' || argument(one);
                return failure('jit', `\`args[${at}]\` contains itself`, 'INVALID_ARGUMENT');
            },
        });
    });
    return (values) => parts.map((part) => part(values));
};

/**
 * Returns copies of nodes that compute something, which nothing else makes leaves of.
 * @param {Node[]} order
 */
const copied = (order) => {
    /** @type {Map<Node, Node>} */
    const copies = new Map();
    const copyOf = (/** @type {Node} */ node) => /** @type {Node} */ (copies.get(node));
    for (const node of order) {
        const { device, shape, op, parameters, dtype } = node;
        const inputs = node.inputs.map(copyOf);
        copies.set(node, node.isLeaf ? node : new Node(device, shape, { op, inputs, parameters, dtype }));
    }
    return copyOf;
};

/**
 * Calls a function with parameters like these nodes, which `arrange` arranges; returns the tensors that it recorded.
 * @param {GpuDevice} device
 * @param {Function} f
 * @param {Node[]} nodes
 * @param {(values: any[]) => any[]} arrangeArguments
 * @returns {Jitted}
 */
const recorded = (device, f, nodes, arrangeArguments) => {
    const parameters = nodes.map(({ shape, dtype }) => leaf(device, shape, PARAMETER, dtype));
    /** @type {Node[]} */
    const found = [];
    // The recording needs the tensors that the function makes as often as it runs.
    const result = unscoped(device, () => f(...arrangeArguments(parameters.map((node) => new Tensor(node)))));
    const arrange = arrangedResult(result, found);
    if (found.some((node) => node.device && node.device !== device)) {
        throw failure('jit', 'the function returned a tensor of another device', 'FOREIGN');
    }
    const recording = recordingOf(found.map(copied(ordered(found))));
    return { ...recording, arrange, places: recording.leaves.map((one) => parameters.indexOf(one)) };
};

/**
 * @param {GpuDevice} device
 * @param {Jitted} jitted
 * @param {Node[]} nodes
 */
const run = async (device, { places, arrange, ...recording }, nodes) => {
    const given = recording.leaves.map((own, at) => nodes[places[at]] ?? own);
    const made = recording.results.map(({ shape, dtype }) => new Node(device, shape, { op: 'jit', dtype }));
    await keepRecorded(recording, given, made);
    made.forEach(enter);
    return arrange(made.map((node) => new Tensor(node)));
};

/**
 * Returns the compiled function of a function of tensors.
 * @param {GpuDevice} device
 * @param {any} f
 */
export const compiled = (device, f) => {
    if (typeof f !== 'function') {
        throw failure('jit', `\`f\` is ${shown(f)}, but must be a function of tensors`, 'INVALID_ARGUMENT');
    }
    /** @type {Map<string, Jitted>} */
    const recordings = new Map();
    const find = (/** @type {Node[]} */ nodes, /** @type {(values: any[]) => any[]} */ arrange) => {
        const key = JSON.stringify(arrange(nodes.map(({ shape, dtype }) => `${dtype}[${shape}]`)));
        const known = recordings.get(key);
        if (known) {
            return known;
        }
        const made = recorded(device, f, nodes, arrange);
        recordings.set(key, made);
        const [oldest] = recordings.keys();
        recordings.size > MAX_RECORDINGS && recordings.delete(oldest);
        return made;
    };
    return traced(async (...args) => {
        /** @type {Node[]} */
        const nodes = [];
        const recording = find(nodes, arrangedArguments(device, args, nodes));
        const computed = nodes.filter((node) => !node.isLeaf);
        // Without a wait, arguments that are leaves may be disposed of after the call.
        computed.length > 0 && await kept('jit', computed);
        return run(device, recording, nodes);
    });
};
