// Optimizers: the module returns the nodes of a step, which it writes once for Rust and JavaScript.

import {
    PARAMETER, Tensor, added, arrangedTensors, beside, bitsOf, described, enter, entered, failure, leaf, optionsOf, shown, sizeOf, text,
} from '../npm/index.js';
import { update } from '#train';

/**
 * @import { GpuDevice, Node, Shape } from '../npm/index.js'
 * @typedef {{ rule: number, moments: number, defaults: Record<string, number | boolean> }} Rule
 */

/**
 * Each rule's number in the module, its moments, and its options: the learning rate, and the numbers of the rule.
 * @type {Record<string, Rule>}
 */
const RULES = {
    sgd: { rule: 0, moments: 0, defaults: { learningRate: 0.01, momentum: 0, nesterov: false, weightDecay: 0 } },
    adam: { rule: 1, moments: 2, defaults: { learningRate: 0.001, b1: 0.9, b2: 0.999, epsilon: 1e-8, weightDecay: 0 } },
    adamw: { rule: 1, moments: 2, defaults: { learningRate: 0.001, b1: 0.9, b2: 0.999, epsilon: 1e-8, weightDecay: 1e-4 } },
    lion: { rule: 2, moments: 1, defaults: { learningRate: 0.0001, b1: 0.9, b2: 0.99, weightDecay: 0.001 } },
};

const CLIP = 3;

/**
 * Returns the results of a rule for nodes: see `Update::record` in `lazy/optimizers.rs`.
 * @param {number} rule
 * @param {number[]} numbers
 * @param {Node[]} nodes
 */
const updated = (rule, numbers, nodes) => {
    // Only their shapes count.
    const leaves = nodes.map(({ device, shape }) => leaf(device, shape, PARAMETER));
    const graph = described(leaves, leaves);
    const header = Int32Array.of(1 + numbers.length, rule, ...bitsOf(numbers));
    const words = new Float32Array(header.length + graph.length);
    words.set(new Float32Array(header.buffer));
    words.set(graph, header.length);
    return added(update(words), nodes);
};

/**
 * Returns an option, which must be of the type of its default.
 * @param {string} op
 * @param {string} name
 * @param {any} value
 * @param {number | boolean} usual
 */
const optionOf = (op, name, value, usual) => {
    const isRight = typeof value === typeof usual && (typeof value === 'boolean' || Number.isFinite(value));
    if (!isRight) {
        const needed = typeof usual === 'boolean' ? 'true or false' : 'a finite number';
        throw failure(op, `\`${name}\` is ${shown(value)}, but must be ${needed}`, 'INVALID_ARGUMENT');
    }
    return Number(value);
};

/**
 * Returns the nodes of a tree and the function that arranges others like them; refuses an empty tree.
 * @param {string} op
 * @param {string} what
 * @param {any} value
 * @param {GpuDevice} [device]
 */
const tree = (op, what, value, device) => {
    /** @type {Node[]} */
    const nodes = [];
    const arrange = arrangedTensors(op, what, value, nodes, device);
    if (nodes.length === 0) {
        throw failure(op, `\`${what}\` has no tensors`, 'EMPTY');
    }
    return { nodes, arrange };
};

/**
 * Returns the nodes of a tree that must have the shapes of the parameters.
 * @param {string} op
 * @param {string} what
 * @param {any} value
 * @param {Node[]} parameters
 */
const alike = (op, what, value, parameters) => {
    const { nodes } = tree(op, what, value, parameters[0].device);
    const shapes = (/** @type {Node[]} */ all) => all.map(({ shape }) => text(shape)).join(', ');
    if (shapes(nodes) !== shapes(parameters)) {
        throw failure(op, `\`${what}\` has the shapes ${shapes(nodes)}, but must have those of the parameters: ${shapes(parameters)}`);
    }
    return nodes;
};

/**
 * Returns a leaf of zeros, so that the first step has the structure of all others.
 * @param {GpuDevice} device
 * @param {Shape} shape
 */
const zeros = (device, shape) => {
    const node = leaf(device, shape, new Float32Array(sizeOf(shape)));
    enter(node);
    return node;
};

/** @param {string} op */
const optimizer = (op) => {
    const { rule, defaults, moments } = RULES[op];
    /** @param {any} [given] */
    return function create(given) {
        const options = entered(create, () => {
            const known = optionsOf(op, given, Object.keys(defaults));
            return Object.entries(defaults).map(([name, usual]) => optionOf(op, name, known[name] ?? usual, usual));
        });
        const [usualRate, ...numbers] = options;
        const count = op === 'sgd' && numbers[0] !== 0 ? 1 : moments;
        /** @type {(parameters: any) => any} */
        const init = (parameters) => entered(init, () => {
            const { nodes, arrange } = tree(op, 'parameters', parameters);
            const [{ device }] = nodes;
            const none = () => arrange(nodes.map(({ shape }) => zeros(device, shape)));
            return { steps: new Tensor(zeros(device, [])), moments: Array.from({ length: count }, none) };
        });
        /** @type {(parameters: any, gradients: any, state: any, learningRate?: any) => any} */
        const step = (parameters, gradients, state, learningRate = usualRate) => entered(step, () => {
            const { nodes, arrange } = tree(op, 'parameters', parameters);
            if (state?.moments?.length !== count) {
                throw failure(op, `\`state\` is ${shown(state)}, but must be what \`init\` or \`step\` returned`, 'INVALID_ARGUMENT');
            }
            const groups = [nodes, alike(op, 'gradients', gradients, nodes)];
            groups.push(...state.moments.map((/** @type {any} */ moment) => alike(op, 'state', moment, nodes)));
            const [first] = nodes;
            const leaves = nodes.flatMap((_, at) => groups.map((group) => group[at]));
            const steps = beside(op, 'state.steps', state.steps, first);
            const results = updated(rule, numbers, [...leaves, steps, beside(op, 'learningRate', learningRate, first)]);
            const every = (/** @type {number} */ at) => arrange(nodes.map((_, own) => results[own * (1 + count) + at]));
            return {
                parameters: every(0),
                state: { steps: new Tensor(results[results.length - 1]), moments: state.moments.map((/** @type {any} */ _, /** @type {number} */ at) => every(1 + at)) },
            };
        });
        return { init, step };
    };
};

export const sgd = optimizer('sgd');
export const adam = optimizer('adam');
export const adamw = optimizer('adamw');
export const lion = optimizer('lion');

/**
 * Scales gradients by one number, such that the norm of all their elements is at most `maxNorm`.
 * @param {any} gradients
 * @param {any} maxNorm
 */
export const clipByGlobalNorm = (gradients, maxNorm) => entered(clipByGlobalNorm, () => {
    const { nodes, arrange } = tree('clipByGlobalNorm', 'gradients', gradients);
    return arrange(updated(CLIP, [], [...nodes, beside('clipByGlobalNorm', 'maxNorm', maxNorm, nodes[0])]));
});
