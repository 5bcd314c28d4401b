// Everything that this page asks of relampago.

import init, { GpuDevice } from './relampago/index.js';

/** One device for each choice of back-end, made when first needed. */
const devices = new Map();

/**
 * @param {'auto' | 'gpu' | 'simd'} backend
 * @returns {Promise<GpuDevice>}
 */
export function deviceFor(backend) {
  let device = devices.get(backend);
  if (!device) {
    device = init().then(() => GpuDevice.create({ backend }));
    devices.set(backend, device);
    device.catch(() => forget(backend)); // A later call may have more luck.
  }
  return device;
}

function forget(backend) {
  devices.delete(backend);
}

/** One channel through one kernel. The result has the channel's size; zeros lie beyond its edges. */
export function convolve(device, channel, { width, height }, { kernel, size }) {
  return device.convolve2d(channel, kernel, {
    inputRows: height,
    inputCols: width,
    kernelRows: size,
    kernelCols: size,
    padding: 'same',
  });
}

/** A picture's red, green and blue through one kernel; alpha is kept. */
export async function applyFilter(device, picture, filter) {
  const began = performance.now();
  const colours = picture.channels.slice(0, 3);
  const channels = await Promise.all(colours.map((channel) => convolve(device, channel, picture, filter)));
  const milliseconds = performance.now() - began;
  return { ...picture, channels: [...channels, picture.channels[3]], milliseconds };
}

/** `applyFilter` on the chosen back-end; a GPU that went away is asked for once more. */
export async function applyOn(backend, picture, filter) {
  try {
    return await applyFilter(await deviceFor(backend), picture, filter);
  } catch (error) {
    if (error.code !== 'DEVICE_LOST') {
      throw error;
    }
    forget(backend);
    return applyFilter(await deviceFor(backend), picture, filter);
  }
}

/** Whether the automatic choice leaves a picture to the CPU because a trip to the GPU costs more. */
export function tooSmallForGpu(backend, device, { width, height }, { size }) {
  const work = width * height * size * size;
  return backend === 'auto' && device.backend === 'webgpu' && work < device.policy.convolution;
}
