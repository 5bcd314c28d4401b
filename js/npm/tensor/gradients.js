// Gradients: the module returns the nodes that they need, by the structure of the graph.

import { extension } from './extension.js';
import { added, described, ordered } from './node.js';
import { record } from './record.js';
import { failure, shown, text } from './shape.js';

/** @import { Node } from './node.js' */

/**
 * Refuses a node of indices or truth values, which have no gradient.
 * @param {string} op
 * @param {string} what
 * @param {Node} node
 */
const requireFloats = (op, what, { dtype, shape }) => {
    if (dtype !== 'f32') {
        const has = `\`${what}\` of shape ${text(shape)} has the type ${dtype}`;
        throw failure(op, `${has}, but only tensors of the type f32 have gradients`, 'INVALID_ARGUMENT');
    }
};

/**
 * Returns the gradients of a loss with respect to nodes.
 * @param {string} op
 * @param {Node} loss
 * @param {Node[]} nodes
 */
export const gradientsOf = (op, loss, nodes) => {
    requireFloats(op, 'the loss', loss);
    nodes.forEach((node) => requireFloats(op, 'a tensor', node));
    if (loss.size !== 1) {
        throw failure(op, `the loss has shape ${text(loss.shape)}, but must be one number: take its sum or mean`);
    }
    if (loss.isLeaf && !nodes.includes(loss)) {
        const message = 'the loss has no recorded operations: take gradients before the loss is run';
        throw failure(op, message, 'INVALID_ARGUMENT');
    }
    const roots = [loss, ...nodes];
    const order = ordered(roots);
    return added(extension(op, 'train').differentiate(described(order, roots)), order);
};

/**
 * Returns a function's value, and the gradients of the nodes that `call` calls it with.
 * @param {string} op
 * @param {Node[]} nodes
 * @param {{ call: (own: Node[]) => any, nodeOf: (value: any) => Node | undefined }} functions
 * @returns {{ value: any, gradients: Node[] }}
 */
export const valueAndGradients = (op, nodes, { call, nodeOf }) => {
    // The function has nodes of its own, so that tensors computed outside of it stay constant.
    const own = nodes.map((node) => record('reshape', [node], node.shape, undefined, node.dtype));
    const value = call(own);
    const loss = nodeOf(value);
    if (!loss) {
        throw failure(op, `the function returned ${shown(value)}, but must return a tensor of one element`, 'INVALID_ARGUMENT');
    }
    return { value, gradients: gradientsOf(op, loss, own) };
};

/** @param {Node} x */
export const stopGradient = (x) => record('stopGradient', [x], x.shape, undefined, x.dtype);
