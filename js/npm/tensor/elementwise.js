// Elementwise operations, truth values and reductions: from nodes to nodes.

import { bitsOf } from './node.js';
import { optionsOf } from './options.js';
import { constant, record } from './record.js';
import { axesOf, axisOf, broadcast, failure, reduced, shown, text } from './shape.js';

/**
 * @import { DType, Node } from './node.js'
 * @import { Shape } from './shape.js'
 * @typedef {{ values?: number[], dtype?: DType }} Options
 * @typedef {[name: string, node: Node]} Named
 */

/**
 * Records an operation of the table whose operands broadcast to a shape. `values` are its parameters.
 * @param {string} op
 * @param {Node[]} inputs
 * @param {Shape} shape
 * @param {Options} [options]
 */
export const elementwise = (op, inputs, shape, { values, dtype } = {}) =>
    record(op, inputs, shape, values && values.length > 0 ? bitsOf(values) : undefined, dtype);

/**
 * Records an operation of the table for named operands, which must broadcast with each other.
 * @param {string} name
 * @param {string} op
 * @param {Named[]} named
 * @param {Options} [options]
 */
export const broadcasting = (name, op, named, options) => {
    const shape = broadcast(name, named.map(([argument, node]) => [argument, node.shape]));
    return elementwise(op, named.map(([, node]) => node), shape, options);
};

/**
 * @param {string} op
 * @param {Node} x
 * @param {number} value
 */
const compare = (op, x, value) => elementwise(op, [x, constant(x.device, value)], x.shape, { dtype: 'bool' });

/**
 * Returns 1 where elements are 0, and 0 elsewhere.
 * @param {Node} x
 */
export const not = (x) => compare('equal', x, 0);

/**
 * Returns 1 where elements are not 0, and 0 elsewhere.
 * @param {Node} x
 */
export const truth = (x) => (x.dtype === 'bool' ? x : not(not(x)));

/**
 * The comparisons: an operation of the table, whether its operands are swapped, and whether its result is inverted.
 * @type {Record<string, [op: string, isSwapped?: boolean, isInverted?: boolean]>}
 */
export const COMPARISONS = {
    equal: ['equal'],
    notEqual: ['equal', false, true],
    less: ['less'],
    lessEqual: ['lessEqual'],
    greater: ['less', true],
    greaterEqual: ['lessEqual', true],
};

/**
 * @param {string} name
 * @param {Node} a
 * @param {Node} b
 */
export const comparison = (name, a, b) => {
    const [op, isSwapped, isInverted] = COMPARISONS[name];
    const shape = broadcast(name, [['a', a.shape], ['b', b.shape]]);
    const result = elementwise(op, isSwapped ? [b, a] : [a, b], shape, { dtype: 'bool' });
    return isInverted ? not(result) : result;
};

/** @param {Node} x */
export const isNan = (x) => comparison('notEqual', x, x);

/** The largest number of `f32`. */
const LARGEST = (2 - 2 ** -23) * 2 ** 127;

/**
 * Returns 1 where elements are neither NaN nor infinite, and 0 elsewhere.
 * @param {Node} x
 */
export const isFinite = (x) => compare('lessEqual', elementwise('abs', [x], x.shape), LARGEST);

/**
 * @param {Node} a
 * @param {Node} b
 */
export const and = (a, b) => broadcasting('and', 'mul', [['a', truth(a)], ['b', truth(b)]], { dtype: 'bool' });

/**
 * @param {Node} a
 * @param {Node} b
 */
export const or = (a, b) => broadcasting('or', 'maximum', [['a', truth(a)], ['b', truth(b)]], { dtype: 'bool' });

/**
 * @param {Node} condition
 * @param {Node} a
 * @param {Node} b
 */
export const where = (condition, a, b) => {
    /** @type {Named[]} */
    const named = [['condition', condition], ['a', a], ['b', b]];
    const shape = broadcast('where', named.map(([name, node]) => [name, node.shape]));
    // The other one is −0 there, which changes nothing in a sum.
    const kept = [elementwise('keepWhere', [a, condition], shape), elementwise('keepUnless', [b, condition], shape)];
    return elementwise('vecAdd', kept, shape);
};

/**
 * The reductions of the table that others are made of.
 * @type {Record<string, string>}
 */
const KINDS = { any: 'max', all: 'min', variance: 'mean', std: 'mean' };

/** The reductions of the table in the order in which the module knows them. */
export const FOLDS = ['sum', 'mean', 'max', 'min', 'argmax', 'argmin'];

/**
 * The results of reductions of no elements.
 * @type {Record<string, number>}
 */
const NEUTRAL = { sum: 0, any: 0, all: 1 };

/**
 * The types of results that are not f32.
 * @type {Record<string, DType>}
 */
const DTYPES = { any: 'bool', all: 'bool', argmax: 'u32', argmin: 'u32' };

/**
 * Returns the axes that a reduction's options name; indices are along one axis, or of all elements.
 * @param {string} name
 * @param {Node} x
 * @param {any} axis
 */
const axesFor = (name, x, axis) => {
    if (name.startsWith('arg') && axis !== undefined && axis !== null) {
        return [axisOf(name, axis, x.shape)];
    }
    return axesOf(name, axis, x.shape);
};

/**
 * @param {string} name
 * @param {Node} x
 * @param {any} [axis]
 * @param {any} [options]
 */
export const reduce = (name, x, axis, options) => {
    const { keepDims = false } = optionsOf(name, options, ['keepDims']);
    if (typeof keepDims !== 'boolean') {
        throw failure(name, `\`keepDims\` is ${shown(keepDims)}, but must be true or false`, 'INVALID_ARGUMENT');
    }
    const axes = axesFor(name, x, axis);
    const shape = reduced(x.shape, axes, keepDims);
    const dtype = DTYPES[name];
    if (axes.some((one) => x.shape[one] === 0)) {
        if (!(name in NEUTRAL)) {
            throw failure(name, `there is no element along axis ${text(axes)} of shape ${text(x.shape)}`, 'EMPTY');
        }
        const parameters = [...shape.map(() => -1), ...shape.map(() => 1)];
        return record('view', [constant(x.device, NEUTRAL[name])], shape, parameters, dtype);
    }
    const fold = FOLDS.indexOf(KINDS[name] ?? name);
    return record('reduce', [dtype === 'bool' ? truth(x) : x], shape, [fold, keepDims ? 1 : 0, ...axes], dtype);
};

/**
 * Records means of squared distances from the mean; of `std` the roots of these.
 * @param {string} name
 * @param {Node} x
 * @param {any} axis
 * @param {any} options
 */
export const spread = (name, x, axis, options) => {
    const mean = reduce(name, x, axis, { keepDims: true });
    const distances = broadcasting(name, 'sub', [['a', x], ['b', mean]]);
    const variance = reduce(name, elementwise('square', [distances], x.shape), axis, options);
    return name === 'std' ? elementwise('sqrt', [variance], variance.shape) : variance;
};
