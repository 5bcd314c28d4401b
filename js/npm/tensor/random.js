// Random numbers for tensors: the module's generator, whose elements follow from the seed and their index.

import { GpuDevice } from '#computing';
import { optionsOf } from './options.js';
import { failure, shown, sizeOf } from './shape.js';

/**
 * @import { Shape } from './shape.js'
 * @typedef {{ defaults: Record<string, number>, scaled: (parameters: any) => (value: number) => number }} Distribution
 */

/**
 * A distribution's parameters with their defaults, and its function of an element of the standard distribution.
 * @type {Record<'uniform' | 'normal', Distribution>}
 */
const DISTRIBUTIONS = {
    uniform: {
        defaults: { min: 0, max: 1 },
        // Rounding to f32 may reach `max`, which does not belong to the range.
        scaled: ({ min, max }) => {
            const below = Math.max(min, justBelow(max));
            return (value) => Math.min(min + (max - min) * value, below);
        },
    },
    normal: {
        defaults: { mean: 0, deviation: 1 },
        scaled: ({ mean, deviation }) => (value) => mean + deviation * value,
    },
};

/**
 * Returns the largest f32 below a number.
 * @param {number} max
 */
const justBelow = (max) => {
    const value = Float32Array.of(max);
    const bits = new Int32Array(value.buffer);
    if (value[0] < max) {
        return value[0];
    }
    if (value[0] === 0) {
        return -1.401298464324817e-45;
    }
    bits[0] += value[0] > 0 ? -1 : 1;
    return value[0];
};

/** @param {string} op */
export const seedOf = (op, seed = Math.floor(Math.random() * 2 ** 53)) => {
    if (!Number.isSafeInteger(seed) || seed < 0) {
        throw failure(op, `\`seed\` is ${shown(seed)}, but must be a whole number from 0 to 2^53 - 1`, 'INVALID_ARGUMENT');
    }
    return seed;
};

/**
 * Returns a distribution's parameters. Each must be a finite number.
 * @param {string} op
 * @param {Record<string, number>} defaults
 * @param {any} options
 * @returns {[name: string, value: number][]}
 */
const parametersOf = (op, defaults, options) => {
    /** @type {[name: string, value: number][]} */
    const parameters = Object.entries(defaults).map(([name, value]) => [name, options[name] ?? value]);
    for (const [name, value] of parameters) {
        if (typeof value !== 'number' || !Number.isFinite(Math.fround(value))) {
            throw failure(op, `\`${name}\` is ${shown(value)}, but must be a finite number`, 'INVALID_ARGUMENT');
        }
    }
    const { min, max, deviation } = Object.fromEntries(parameters);
    if (min >= max) {
        throw failure(op, `\`min\` is ${min}, but must be below \`max\` (${max})`, 'INVALID_ARGUMENT');
    }
    if (deviation < 0) {
        throw failure(op, `\`deviation\` is ${deviation}, but must be at least 0`, 'INVALID_ARGUMENT');
    }
    return parameters;
};

/**
 * Returns the values of a shape by a distribution of the table.
 * @param {'uniform' | 'normal'} op
 * @param {Shape} shape
 * @param {any} given
 */
export const drawn = (op, shape, given) => {
    const { defaults, scaled } = DISTRIBUTIONS[op];
    const options = optionsOf(op, given, ['seed', ...Object.keys(defaults)]);
    const parameters = parametersOf(op, defaults, options);
    const values = new Float32Array(sizeOf(shape));
    GpuDevice.fillRandom(values, seedOf(op, options.seed), op === 'normal');
    const isStandard = parameters.every(([name, value]) => value === defaults[name]);
    return isStandard ? values : values.map(scaled(Object.fromEntries(parameters)));
};
