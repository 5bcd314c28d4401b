// The functions of `relampago/numeric`, which that entry records.

import { extension } from './extension.js';

/** The names of functions of devices, of the class of tensors, and of tensors. */
export const NUMERIC = {
    device: ['arange', 'linspace', 'eye'],
    class: ['einsum'],
    tensor: [
        'zerosLike', 'onesLike', 'fullLike', 'pad', 'tile', 'repeat', 'roll', 'flip', 'split', 'prod', 'norm', 'cumsum',
        'cumprod', 'sort', 'argsort', 'modulo', 'fmod', 'atan2', 'logaddexp', 'hypot', 'bincount', 'histogram', 'scatterAdd',
        'dropout', 'resize', 'maxPool', 'avgPool', 'fft', 'ifft', 'rfft', 'irfft', 'stft', 'istft',
    ],
};

/**
 * Returns the result of a function of `self`, which is a device, the class or a tensor.
 * @param {string} name
 * @param {any} self
 * @param {any[]} values
 */
export const numeric = (name, self, values) => extension(name, 'numeric').call(name, self, values);
