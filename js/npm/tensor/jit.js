// Functions of tensors that record once for each combination of shapes, and then run as one program.

import { traced } from '../../common/stack.js';
import { Node, PARAMETER, ordered, structure } from './node.js';
import { leaf } from './record.js';
import { keepRecorded } from './run.js';
import { enter, unscoped } from './scope.js';
import { failure, shown } from './shape.js';
import { Tensor, beside, kept, nodeOf } from './tensor.js';

/** Recordings that a function keeps, one for each structure of shapes; the oldest one goes first. */
const MAX_RECORDINGS = 64;

/**
 * Appends the nodes of a result to `nodes`. Returns a function that puts tensors in their places. `above` are the arrays
 * and objects that the result is in.
 */
const arranged = (result, nodes, above = []) => {
    const node = nodeOf(result);
    if (above.includes(result)) {
        throw failure('jit', 'the function returned an array or object that contains itself', 'INVALID_ARGUMENT');
    }
    const within = [...above, result];
    if (node) {
        const place = nodes.push(node) - 1;
        return (tensors) => tensors[place];
    }
    if (typeof result?.then === 'function') {
        Promise.resolve(result).catch(() => {}); // This error is the one to see.
        throw failure('jit', 'the function returned a Promise, but must not be async: it only records', 'INVALID_ARGUMENT');
    }
    if (Array.isArray(result)) {
        const parts = result.map((one) => arranged(one, nodes, within));
        return (tensors) => parts.map((part) => part(tensors));
    }
    if (Object(result) !== result || Object.getPrototypeOf(result) !== Object.prototype) {
        const needed = 'must return a tensor, or arrays and objects of tensors';
        throw failure('jit', `the function returned ${shown(result)}, but ${needed}`, 'INVALID_ARGUMENT');
    }
    const parts = Object.entries(result).map(([name, one]) => [name, arranged(one, nodes, within)]);
    return (tensors) => Object.fromEntries(parts.map(([name, part]) => [name, part(tensors)]));
};

/** Returns copies of nodes that compute something, which nothing else makes leaves of. */
const copied = (order) => {
    const copies = new Map();
    for (const node of order) {
        const { device, shape, op, parameters, dtype } = node;
        const inputs = node.inputs.map((input) => copies.get(input));
        copies.set(node, node.isLeaf ? node : new Node(device, shape, { op, inputs, parameters, dtype }));
    }
    return copies;
};

/** Calls a function with parameters like these nodes; returns the tensors that it recorded. */
const recorded = (device, f, nodes) => {
    const parameters = nodes.map(({ shape, dtype }) => leaf(device, shape, PARAMETER, dtype));
    const found = [];
    // The recording needs the tensors that the function makes as often as it runs.
    const result = unscoped(device, () => f(...parameters.map((node) => new Tensor(node))));
    const arrange = arranged(result, found);
    if (found.some((node) => node.device && node.device !== device)) {
        throw failure('jit', 'the function returned a tensor of another device', 'FOREIGN');
    }
    const copies = copied(ordered(found));
    const results = found.map((node) => copies.get(node));
    const order = ordered(results);
    const leaves = order.filter((node) => node.isLeaf);
    const key = leaves.length < order.length ? structure(order, results) : undefined;
    return { order, leaves, results, key, arrange, places: leaves.map((one) => parameters.indexOf(one)) };
};

const run = async (device, { places, arrange, ...recording }, nodes) => {
    const given = recording.leaves.map((own, at) => nodes[places[at]] ?? own);
    const made = recording.results.map(({ shape, dtype }) => new Node(device, shape, { op: 'jit', dtype }));
    await keepRecorded(recording, given, made);
    made.forEach(enter);
    return arrange(made.map((node) => new Tensor(node)));
};

/** Returns the compiled function of a function of tensors. */
export const compiled = (device, f) => {
    if (typeof f !== 'function') {
        throw failure('jit', `\`f\` is ${shown(f)}, but must be a function of tensors`, 'INVALID_ARGUMENT');
    }
    const recordings = new Map();
    const find = (nodes) => {
        const key = JSON.stringify(nodes.map(({ shape, dtype }) => [shape, dtype]));
        if (!recordings.has(key)) {
            recordings.set(key, recorded(device, f, nodes));
            recordings.size > MAX_RECORDINGS && recordings.delete(recordings.keys().next().value);
        }
        return recordings.get(key);
    };
    return traced(async (...args) => {
        const nodes = args.map((value, at) => beside('jit', `args[${at}]`, value, { device }));
        const recording = find(nodes);
        const computed = nodes.filter((node) => !node.isLeaf);
        // Without a wait, arguments that are leaves may be disposed of after the call.
        computed.length > 0 && await kept('jit', computed);
        return run(device, recording, nodes);
    });
};
