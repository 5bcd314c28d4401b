// Scopes give back the buffers of tensors that were made while a function ran.

import { ordered } from './node.js';

/** Device → its open scopes, each a set of leaves. */
const open = new WeakMap();

const scopesOf = (device) => {
    if (!open.has(device)) {
        open.set(device, []);
    }
    return open.get(device);
};

/** Has the innermost open scope dispose of a leaf. */
export const enter = (node) => {
    scopesOf(node.device).at(-1)?.add(node);
};

/** Calls `f`; tensors that it makes belong to no scope. */
export const unscoped = (device, f) => {
    const scopes = scopesOf(device);
    scopes.push(new Set());
    try {
        return f();
    } finally {
        scopes.pop();
    }
};

/** Returns the nodes of all tensors in a result: a tensor, or arrays and objects of tensors. */
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

/** Calls `f`, and disposes of the leaves that were made meanwhile, except the leaves that its result needs. */
export const scope = async (device, f, nodeOf) => {
    const scopes = scopesOf(device);
    const own = new Set();
    const outer = scopes.at(-1);
    scopes.push(own);
    let needed = new Set();
    try {
        const result = await f();
        needed = new Set(ordered(nodesIn(result, nodeOf)));
        return result;
    } finally {
        scopes.splice(scopes.indexOf(own), 1);
        for (const node of own) {
            needed.has(node) ? scopes.includes(outer) && outer.add(node) : node.dispose();
        }
    }
};
