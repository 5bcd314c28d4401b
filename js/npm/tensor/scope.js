// Scopes give back the buffers of tensors that were made while a function ran.

import { ordered } from './node.js';

/**
 * @import { GpuDevice } from '../device.js'
 * @import { Node } from './node.js'
 */

/**
 * Device → its open scopes, each a set of leaves.
 * @type {WeakMap<GpuDevice, Set<Node>[]>}
 */
const open = new WeakMap();

/** @param {GpuDevice} device */
const scopesOf = (device) => {
    const scopes = open.get(device) ?? [];
    open.set(device, scopes);
    return scopes;
};

/**
 * Has the innermost open scope dispose of a leaf.
 * @param {Node} node
 */
export const enter = (node) => {
    scopesOf(node.device).at(-1)?.add(node);
};

/**
 * Calls `f`; tensors that it makes belong to no scope.
 * @template T
 * @param {GpuDevice} device
 * @param {() => T} f
 */
export const unscoped = (device, f) => {
    const scopes = scopesOf(device);
    scopes.push(new Set());
    try {
        return f();
    } finally {
        scopes.pop();
    }
};

/**
 * Returns the nodes of all tensors in a result: a tensor, or arrays and objects of tensors.
 * @param {any} value
 * @param {(value: any) => Node | undefined} nodeOf
 * @returns {Node[]}
 */
const nodesIn = (value, nodeOf, seen = new Set()) => {
    const node = nodeOf(value);
    if (node) {
        return [node];
    }
    if (Object(value) !== value || ArrayBuffer.isView(value) || seen.has(value)) {
        return [];
    }
    seen.add(value);
    return Object.values(value).flatMap((inner) => nodesIn(inner, nodeOf, seen));
};

/**
 * Calls `f`, and disposes of the leaves that were made meanwhile, except the leaves that its result needs.
 * @param {GpuDevice} device
 * @param {() => any} f
 * @param {(value: any) => Node | undefined} nodeOf
 */
export const scope = async (device, f, nodeOf) => {
    const scopes = scopesOf(device);
    /** @type {Set<Node>} */
    const own = new Set();
    const outer = scopes.at(-1);
    scopes.push(own);
    /** @type {Set<Node>} */
    let needed = new Set();
    try {
        const result = await f();
        needed = new Set(ordered(nodesIn(result, nodeOf)));
        return result;
    } finally {
        scopes.splice(scopes.indexOf(own), 1);
        for (const node of own) {
            needed.has(node) ? outer && scopes.includes(outer) && outer.add(node) : node.dispose();
        }
    }
};
