// Types of arguments: each checks a value, and returns its words.

import { beside, failure, indicesOf, listed, seedOf, shown } from '../npm/index.js';

/**
 * @import { GpuDevice, Node } from '../npm/index.js'
 * @typedef {{ op: string, device: GpuDevice, input(node: Node, isIndices?: boolean): number }} Call
 * @typedef {ArrayLike<number> & Iterable<number>} Words
 * @typedef {(call: Call, what: string, value: any) => Words} Type
 */

/** The largest whole number that the module takes. */
const MOST = 2 ** 31 - 1;

/**
 * @param {{ op: string }} call
 * @param {string} what
 * @param {any} value
 * @param {string} needed
 * @returns {never}
 */
const refuse = ({ op }, what, value, needed) => {
    throw failure(op, `\`${what}\` is ${shown(value)}, but must be ${needed}`, 'INVALID_ARGUMENT');
};

const isInteger = (/** @type {any} */ value) => Number.isInteger(value) && Math.abs(value) <= MOST;
const isSize = (/** @type {any} */ value) => isInteger(value) && value >= 0;
const isList = (/** @type {any} */ value, /** @type {(one: any) => boolean} */ isElement) => Array.isArray(value) && value.every(isElement);

/**
 * Returns a type of values for which `isRight` holds.
 * @param {(value: any) => boolean} isRight
 * @param {string} needed
 * @param {(value: any) => Words} words
 * @returns {Type}
 */
const checked = (isRight, needed, words) => (call, what, value) =>
    (isRight(value) ? words(value) : refuse(call, what, value, needed));

const one = (/** @type {any} */ value) => [value];
const all = (/** @type {any} */ values) => values;
const bits = (/** @type {number} */ value) => [...new Int32Array(Float64Array.of(value).buffer)];

const SIZE = 'a whole number from 0 to 2^31 - 1';
const INTEGER = 'a whole number between -2^31 and 2^31';

/** @type {Record<string, Type>} */
const TYPES = {
    number: checked((value) => typeof value === 'number', 'a number', bits),
    size: checked(isSize, SIZE, one),
    integer: checked(isInteger, INTEGER, one),
    boolean: checked((value) => typeof value === 'boolean', 'true or false', (value) => [Number(value)]),
    text: checked((value) => typeof value === 'string', 'a text', (value) => [...value].map((letter) => Number(letter.codePointAt(0)))),
    list: checked((value) => isList(value, isSize), 'an array of whole numbers from 0 to 2^31 - 1', all),
    sizes: checked((value) => [value].flat().every(isSize), `${SIZE}, or an array of these`, (value) => [value].flat()),
    axes: checked((value) => [value].flat().every(isInteger), 'a whole number or an array of these', (value) => [value].flat()),
    pairs: checked(
        (value) => isList(value, (pair) => isList(pair, isSize) && pair.length === 2),
        'an array of [before, after] for each axis, both whole numbers from 0',
        (value) => value.flat(),
    ),
    parts: checked(
        (value) => isSize(value) || isList(value, isSize), 'a whole number from 0, or an array of indices',
        (value) => (Array.isArray(value) ? [0, ...value] : [1, value]),
    ),
    seed: ({ op }, _, value) => {
        const seed = seedOf(op, value);
        return [seed | 0, seed / 2 ** 32];
    },
    tensor: (call, what, value) => [call.input(beside(call.op, what, value, call))],
    indices: (call, what, value) => [call.input(indicesOf(call.op, what, value, call), true)],
    tensors: (call, _, value) => listed(call.op, value).map((node) => call.input(node)),
};

/**
 * Returns the type of a value that must be one of several names.
 * @param {string[]} names
 */
const choice = (names) => {
    const quoted = names.map((name) => `'${name}'`);
    const needed = `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
    return checked((value) => names.includes(value), needed, (value) => [names.indexOf(value)]);
};

/**
 * Returns the words of an argument, and undefined for one that was left out.
 * @param {Call} call
 * @param {{ name: string, type: string, isOptional: boolean }} parameter
 * @param {any} value
 */
export const argument = (call, { name, type, isOptional }, value) => {
    if (isOptional && (value === undefined || (type === 'axes' && value === null)) && type !== 'seed') {
        return undefined;
    }
    return (TYPES[type] ?? choice(type.split('/')))(call, name, value);
};
