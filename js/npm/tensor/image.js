// Images: bytes from 0 to 255 on the host, numbers from 0 to 1 in tensors. The device converts them, so that only bytes
// travel, four in the bits of each value.

import { classOf } from '../arrays.js';
import { permute } from './movement.js';
import { ABORT, optionsOf } from './options.js';
import { leaf, record } from './record.js';
import { failure, shown, text, whole } from './shape.js';
import { requirePresent } from './values.js';

/**
 * @import { GpuDevice } from '../device.js'
 * @import { Node } from './node.js'
 * @import { Shape } from './shape.js'
 */

const CHANNELS = 4;

/** How the channels of a pixel lie: side by side, or in a plane each. */
const LAYOUTS = ['pixels', 'planes'];

/**
 * @param {string} op
 * @param {any} options
 * @param {string[]} [others]
 * @returns {string}
 */
const layoutOf = (op, options, others = []) => {
    const { layout = 'pixels' } = optionsOf(op, options, ['layout', ...others]);
    if (!LAYOUTS.includes(layout)) {
        throw failure(op, `\`layout\` is ${shown(layout)}, but must be 'pixels' or 'planes'`, 'INVALID_ARGUMENT');
    }
    return layout;
};

/**
 * Returns the bytes of an image, which must have four for each pixel.
 * @param {any} image
 */
const bytesOf = (image) => {
    const op = 'fromImage';
    const { data, width, height } = Object(image);
    if (!/^Uint8/.test(classOf(data) ?? '')) {
        const needed = 'an ImageData, or { data, width, height } with a Uint8Array or a Uint8ClampedArray';
        throw failure(op, `\`image\` is ${shown(image)}, but must be ${needed}`, 'INVALID_ARGUMENT');
    }
    requirePresent(op, 'data', data);
    whole(op, 'width', width);
    whole(op, 'height', height);
    if (data.length !== width * height * CHANNELS) {
        const needed = `${height} × ${width} pixels of ${CHANNELS} channels need ${width * height * CHANNELS}`;
        throw failure(op, `\`data\` has ${data.length} bytes, but ${needed}`);
    }
    return data;
};

/**
 * Returns the node of an image.
 * @param {GpuDevice} device
 * @param {any} image
 * @param {any} options
 */
export const pixelsOf = (device, image, options) => {
    const layout = layoutOf('fromImage', options);
    const copy = new Uint8Array(bytesOf(image));
    const { width, height } = image;
    const words = leaf(device, [copy.length / CHANNELS], new Float32Array(copy.buffer));
    // They never stay on the device, since the numbers do.
    words.uses = -Infinity;
    const [stride, shape] = layout === 'planes'
        ? [words.size, [CHANNELS, height, width]]
        : [1, [height, width, CHANNELS]];
    const node = record('unpackBytes', [words], shape, [stride]);
    node.isImage = true;
    return node;
};

/**
 * Returns the height, width and number of channels of a tensor's shape: one, three or four.
 * @param {Shape} shape
 * @param {string} layout
 */
const sidesOf = (shape, layout) => {
    const [height, width, channels] = layout === 'planes' && shape.length === 3
        ? [shape[1], shape[2], shape[0]]
        : [shape[0], shape[1], shape.length === 2 ? 1 : shape[2]];
    if (![2, 3].includes(shape.length) || ![1, 3, 4].includes(channels)) {
        const sides = layout === 'planes' ? '[channels, height, width]' : '[height, width, channels]';
        const needed = `[height, width] or ${sides} with 1, 3 or 4 channels`;
        throw failure('toImageData', `shape ${text(shape)} is no image, which must be ${needed}`);
    }
    return { height, width, channels };
};

/**
 * Adds the channels that pixels lack: of grey, green and blue; and alpha.
 * @param {Uint8ClampedArray} bytes
 * @param {number} channels
 * @param {number} length
 */
const withAlpha = (bytes, channels, length) => {
    const pixels = new Uint8ClampedArray(length).fill(255);
    const [green, blue] = channels === 1 ? [0, 0] : [1, 2];
    for (let from = 0, to = 0; to < length; from += channels, to += CHANNELS) {
        pixels[to] = bytes[from];
        pixels[to + 1] = bytes[from + green];
        pixels[to + 2] = bytes[from + blue];
    }
    return pixels;
};

/**
 * Returns the image of a tensor, whose words `read` computes; a plain object where the host has no ImageData.
 * @param {Node} node
 * @param {any} options
 * @param {(words: Node, signal: any) => Promise<Float32Array>} read
 */
export const imageOf = async (node, options, read) => {
    const layout = layoutOf('toImageData', options, ABORT);
    const { height, width, channels } = sidesOf(node.shape, layout);
    if (node.size === 0) {
        throw failure('toImageData', `shape ${text(node.shape)} has no pixels`, 'EMPTY');
    }
    // Four planes are woven on the way; fewer become pixels first.
    const isWoven = layout === 'planes' && channels === CHANNELS;
    const pixels = layout === 'planes' && channels === 3 ? permute(node, [1, 2, 0]) : node;
    const length = Math.ceil(node.size / CHANNELS);
    const packed = record('packBytes', [pixels], [length], [isWoven ? length : 1]);
    const words = await read(packed, options?.signal);
    const memory = /** @type {ArrayBuffer} */ (words.buffer);
    const bytes = new Uint8ClampedArray(memory, words.byteOffset, words.byteLength);
    const data = channels === CHANNELS ? bytes : withAlpha(bytes, channels, height * width * CHANNELS);
    return globalThis.ImageData ? new ImageData(data, width, height) : { data, width, height };
};
