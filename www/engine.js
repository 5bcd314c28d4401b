// Everything that this page asks of relampago.

import { entryAt } from './entry.js';

const PACKAGE = new URL('relampago/index.js', import.meta.url);

/** One device for each choice of back-end, made when first needed. */
const devices = new Map();

/**
 * @param {'auto' | 'gpu' | 'simd'} backend
 * @param {(text: string) => void} [show] Tells the visitor that the package is still being built.
 * @returns {Promise<import('./relampago/index.js').GpuDevice>}
 */
export function deviceFor(backend, show = () => {}) {
  let device = devices.get(backend);
  if (!device) {
    device = create(backend, show);
    devices.set(backend, device);
    device.catch(() => forget(backend)); // A later call may have more luck.
  }
  return device;
}

async function create(backend, show) {
  const { default: init, GpuDevice } = await entryAt(PACKAGE, show);
  await init();
  return GpuDevice.create({ backend });
}

function forget(backend) {
  devices.delete(backend);
}

const optionsFor = ({ width, height }, { size }) => ({
  inputRows: height,
  inputCols: width,
  kernelRows: size,
  kernelCols: size,
  padding: 'same',
});

/** One channel through one kernel. The result has the channel's size; zeros lie beyond its edges. */
export function convolve(device, channel, picture, filter) {
  return device.convolve2d(channel, filter.kernel, optionsFor(picture, filter));
}

/**
 * A picture's red, green and blue through one kernel, of which as much as `strength`, from 0 to 1,
 * is mixed into the picture; alpha is kept.
 */
export async function applyFilter(device, picture, filter, strength = 1) {
  const began = performance.now();
  const colours = picture.channels.slice(0, 3);
  const channels = strength === 1
    ? await Promise.all(colours.map((channel) => convolve(device, channel, picture, filter)))
    : await mixed(device, picture, filter, strength);
  const milliseconds = performance.now() - began;
  return { ...picture, channels: [...channels, picture.channels[3]], milliseconds };
}

/** What a filter's batch reads, in the order of recording. */
export const INPUTS = ['weights', 'red', 'green', 'blue'];

/** How a picture's channels are computed in one batch. */
export async function planOf(device, picture, filter, strength) {
  const batch = device.batch();
  record(batch, (values) => batch.placeholder(values.length), picture, filter, strength);
  const plan = await batch.explain();
  batch.dispose();
  return plan;
}

async function mixed(device, picture, filter, strength) {
  const batch = device.batch();
  const results = record(batch, (values) => batch.upload(values), picture, filter, strength);
  await batch.execute();
  const channels = await Promise.all(results.map((result) => batch.read(result)));
  batch.dispose();
  return channels;
}

/** Records the three channels, `x + strength · (filtered − x)` each; `take` records an input. */
function record(batch, take, picture, filter, strength) {
  const weights = take(filter.kernel);
  return picture.channels.slice(0, 3).map((channel) => {
    const x = take(channel);
    const filtered = batch.convolve2d(x, weights, optionsFor(picture, filter));
    return strength === 1 ? filtered : batch.vecAdd(x, batch.scale(batch.sub(filtered, x), strength));
  });
}

/** `applyFilter` on the chosen back-end; a GPU that went away is asked for once more. */
export async function applyOn(backend, ...what) {
  try {
    return await applyFilter(await deviceFor(backend), ...what);
  } catch (error) {
    if (error.code !== 'DEVICE_LOST') {
      throw error;
    }
    forget(backend);
    return applyFilter(await deviceFor(backend), ...what);
  }
}

/** Whether the automatic choice leaves a picture to the CPU because a trip to the GPU costs more. */
export function tooSmallForGpu(backend, device, { width, height }, { size }) {
  const work = width * height * size * size;
  return backend === 'auto' && device.backend === 'webgpu' && work < device.policy.convolution;
}
