// Trees of tensors: one, or arrays and objects of tensors.

/** @import { Node } from './node.js' */

/** @typedef {'cycle' | 'promise' | 'value'} Reason */

/**
 * Appends the nodes of a tree to `nodes`. Returns a function that puts other values, which have the order of all nodes, in
 * their places. `nodeOf` returns a tensor's node, and undefined for other values; `failed` returns the error for a
 * reason: 'cycle', 'promise' or 'value'.
 * @param {any} tree
 * @param {Node[]} nodes
 * @param {{ nodeOf: (value: any) => Node | undefined, failed: (reason: Reason, value: any) => Error }} functions
 * @param {any[]} [above]
 * @returns {(values: any[]) => any}
 */
export const arranged = (tree, nodes, { nodeOf, failed }, above = []) => {
    const node = nodeOf(tree);
    if (node) {
        const place = nodes.push(node) - 1;
        return (values) => values[place];
    }
    if (above.includes(tree)) {
        throw failed('cycle', tree);
    }
    if (typeof tree?.then === 'function') {
        Promise.resolve(tree).catch(() => {}); // This error is the one to see.
        throw failed('promise', tree);
    }
    const arrange = (/** @type {any} */ one) => arranged(one, nodes, { nodeOf, failed }, [...above, tree]);
    if (Array.isArray(tree)) {
        const parts = tree.map(arrange);
        return (values) => parts.map((part) => part(values));
    }
    if (Object(tree) !== tree || Object.getPrototypeOf(tree) !== Object.prototype) {
        throw failed('value', tree);
    }
    /** @type {[string, (values: any[]) => any][]} */
    const parts = Object.entries(tree).map(([name, one]) => [name, arrange(one)]);
    return (values) => Object.fromEntries(parts.map(([name, part]) => [name, part(values)]));
};
