// Images: bytes from 0 to 255 on the host, numbers from 0 to 1 in tensors.

import { classOf } from '../core.js';
import { optionsOf } from './options.js';
import { failure, shown, text, whole } from './shape.js';

const CHANNELS = 4;

/** How the channels of a pixel lie: side by side, or in a plane each. */
const LAYOUTS = ['pixels', 'planes'];

const layoutOf = (op, options) => {
    const { layout = 'pixels' } = optionsOf(op, options, ['layout']);
    if (!LAYOUTS.includes(layout)) {
        throw failure(op, `\`layout\` is ${shown(layout)}, but must be 'pixels' or 'planes'`, 'INVALID_ARGUMENT');
    }
    return layout;
};

/** Returns the bytes of an image, which must have four for each pixel. */
const bytesOf = (image) => {
    const op = 'fromImage';
    const { data, width, height } = Object(image);
    if (!['Uint8ClampedArray', 'Uint8Array'].includes(classOf(data))) {
        const what = typeof image?.then === 'function' ? 'a Promise; await it first' : shown(image);
        const needed = 'an ImageData, or { data, width, height } with a Uint8Array or a Uint8ClampedArray';
        throw failure(op, `\`image\` is ${what}, but must be ${needed}`, 'INVALID_ARGUMENT');
    }
    whole(op, 'width', width);
    whole(op, 'height', height);
    if (data.length !== width * height * CHANNELS) {
        const needed = `${height} × ${width} pixels of ${CHANNELS} channels need ${width * height * CHANNELS}`;
        throw failure(op, `\`data\` has ${data.length} bytes, but ${needed}`);
    }
    return data;
};

/** Returns the values of an image, and their shape. */
export const pixelsOf = (image, options) => {
    const layout = layoutOf('fromImage', options);
    const bytes = bytesOf(image);
    const { width, height } = image;
    const source = new Float32Array(bytes.length);
    if (layout === 'pixels') {
        for (let at = 0; at < bytes.length; at++) {
            source[at] = bytes[at] / 255;
        }
        return { source, shape: [height, width, CHANNELS] };
    }
    const size = width * height;
    for (let pixel = 0; pixel < size; pixel++) {
        for (let channel = 0; channel < CHANNELS; channel++) {
            source[channel * size + pixel] = bytes[pixel * CHANNELS + channel] / 255;
        }
    }
    return { source, shape: [CHANNELS, height, width] };
};

/** Returns the height, width and number of channels of a tensor's shape: one, three or four. */
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

/** Writes the pixels to bytes, which round and clamp. Grey becomes red, green and blue. */
const written = (values, { height, width, channels }, layout) => {
    const size = height * width;
    const bytes = new Uint8ClampedArray(size * CHANNELS);
    const [ofPixel, ofChannel] = layout === 'planes' ? [1, size] : [channels, 1];
    const [green, blue] = channels === 1 ? [0, 0] : [ofChannel, 2 * ofChannel];
    const alpha = 3 * ofChannel;
    // Without a loop over channels, which takes twice as long.
    for (let pixel = 0; pixel < size; pixel++) {
        const [from, to] = [pixel * ofPixel, pixel * CHANNELS];
        bytes[to] = values[from] * 255;
        bytes[to + 1] = values[from + green] * 255;
        bytes[to + 2] = values[from + blue] * 255;
        bytes[to + 3] = channels === CHANNELS ? values[from + alpha] * 255 : 255;
    }
    return bytes;
};

/** Returns the image of a tensor, whose values `read` computes; a plain object where the host has no ImageData. */
export const imageOf = async ({ shape }, options, read) => {
    const layout = layoutOf('toImageData', options);
    const sides = sidesOf(shape, layout);
    if (shape.includes(0)) {
        throw failure('toImageData', `shape ${text(shape)} has no pixels`, 'EMPTY');
    }
    const data = written(await read(), sides, layout);
    const { width, height } = sides;
    return globalThis.ImageData ? new ImageData(data, width, height) : { data, width, height };
};
