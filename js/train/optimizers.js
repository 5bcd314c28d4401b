// Optimizers: the module returns the nodes of a step, which it writes once for Rust and JavaScript.

import {
    PARAMETER, Tensor, added, arrangedTensors, beside, bitsOf, described, enter, entered, failure, leaf, optionsOf, shown, sizeOf, text,
} from '../npm/index.js';
import { update } from '#train';

/** Each rule's number in the module, its moments, and its options: the learning rate, and the numbers of the rule. */
const RULES = {
    sgd: { rule: 0, moments: 0, defaults: { learningRate: 0.01, momentum: 0, nesterov: false, weightDecay: 0 } },
    adam: { rule: 1, moments: 2, defaults: { learningRate: 0.001, b1: 0.9, b2: 0.999, epsilon: 1e-8, weightDecay: 0 } },
    adamw: { rule: 1, moments: 2, defaults: { learningRate: 0.001, b1: 0.9, b2: 0.999, epsilon: 1e-8, weightDecay: 1e-4 } },
    lion: { rule: 2, moments: 1, defaults: { learningRate: 0.0001, b1: 0.9, b2: 0.99, weightDecay: 0.001 } },
};

const CLIP = 3;

/** Returns the results of a rule for nodes: see `Update::record` in `lazy/optimizers.rs`. */
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

/** Returns an option, which must be of the type of its default. */
const optionOf = (op, name, value, usual) => {
    const isRight = typeof value === typeof usual && (typeof value === 'boolean' || Number.isFinite(value));
    if (!isRight) {
        const needed = typeof usual === 'boolean' ? 'true or false' : 'a finite number';
        throw failure(op, `\`${name}\` is ${shown(value)}, but must be ${needed}`, 'INVALID_ARGUMENT');
    }
    return Number(value);
};

/** Returns the nodes of a tree and the function that arranges others like them; refuses an empty tree. */
const tree = (op, what, value, device) => {
    const nodes = [];
    const arrange = arrangedTensors(op, what, value, nodes, device);
    if (nodes.length === 0) {
        throw failure(op, `\`${what}\` has no tensors`, 'EMPTY');
    }
    return { nodes, arrange };
};

/** Returns the nodes of a tree that must have the shapes of the parameters. */
const alike = (op, what, value, parameters) => {
    const { nodes } = tree(op, what, value, parameters[0].device);
    const shapes = (all) => all.map(({ shape }) => text(shape)).join(', ');
    if (shapes(nodes) !== shapes(parameters)) {
        throw failure(op, `\`${what}\` has the shapes ${shapes(nodes)}, but must have those of the parameters: ${shapes(parameters)}`);
    }
    return nodes;
};

/** Returns a leaf of zeros, so that the first step has the structure of all others. */
const zeros = (device, shape) => {
    const node = leaf(device, shape, new Float32Array(sizeOf(shape)));
    enter(node);
    return node;
};

const optimizer = (op) => {
    const { rule, defaults, moments } = RULES[op];
    return function create(given) {
        const options = entered(create, () => {
            const known = optionsOf(op, given, Object.keys(defaults));
            return Object.entries(defaults).map(([name, usual]) => optionOf(op, name, known[name] ?? usual, usual));
        });
        const [usualRate, ...numbers] = options;
        const count = op === 'sgd' && numbers[0] !== 0 ? 1 : moments;
        const init = (parameters) => entered(init, () => {
            const { nodes, arrange } = tree(op, 'parameters', parameters);
            const [{ device }] = nodes;
            const none = () => arrange(nodes.map(({ shape }) => zeros(device, shape)));
            return { steps: new Tensor(zeros(device, [])), moments: Array.from({ length: count }, none) };
        });
        const step = (parameters, gradients, state, learningRate = usualRate) => entered(step, () => {
            const { nodes, arrange } = tree(op, 'parameters', parameters);
            if (state?.moments?.length !== count) {
                throw failure(op, `\`state\` is ${shown(state)}, but must be what \`init\` or \`step\` returned`, 'INVALID_ARGUMENT');
            }
            const groups = [nodes, alike(op, 'gradients', gradients, nodes)];
            groups.push(...state.moments.map((moment) => alike(op, 'state', moment, nodes)));
            const [first] = nodes;
            const leaves = nodes.flatMap((_, at) => groups.map((group) => group[at]));
            const steps = beside(op, 'state.steps', state.steps, first);
            const results = updated(rule, numbers, [...leaves, steps, beside(op, 'learningRate', learningRate, first)]);
            const every = (at) => arrange(nodes.map((_, own) => results[own * (1 + count) + at]));
            return {
                parameters: every(0),
                state: { steps: new Tensor(results.at(-1)), moments: state.moments.map((_, at) => every(1 + at)) },
            };
        });
        return { init, step };
    };
};

export const sgd = optimizer('sgd');
export const adam = optimizer('adam');
export const adamw = optimizer('adamw');
export const lion = optimizer('lion');

/** Scales gradients by one number, such that the norm of all their elements is at most `maxNorm`. */
export const clipByGlobalNorm = (gradients, maxNorm) => entered(clipByGlobalNorm, () => {
    const { nodes, arrange } = tree('clipByGlobalNorm', 'gradients', gradients);
    return arrange(updated(CLIP, [], [...nodes, beside('clipByGlobalNorm', 'maxNorm', maxNorm, nodes[0])]));
});
