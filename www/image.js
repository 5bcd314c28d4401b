// Pictures: decoding, scaling, and the way between a canvas and one Float32Array a channel.

/** The longest side that is computed and shown. */
const LONGEST = 1024;

/** Decodes a picture; one that is too large is scaled down. */
export async function decode(blob) {
  const bitmap = await createImageBitmap(blob);
  const scale = Math.min(1, LONGEST / Math.max(bitmap.width, bitmap.height));
  const size = (side) => Math.max(1, Math.round(side * scale));
  const pixels = draw(bitmap, [0, 0, bitmap.width, bitmap.height], size(bitmap.width), size(bitmap.height));
  bitmap.close();
  return pixels;
}

/** The middle of a picture as a small square. */
export function thumbnail(pixels, side) {
  const canvas = new OffscreenCanvas(pixels.width, pixels.height);
  canvas.getContext('2d').putImageData(pixels, 0, 0);
  const least = Math.min(pixels.width, pixels.height);
  return draw(canvas, [(pixels.width - least) / 2, (pixels.height - least) / 2, least, least], side, side);
}

function draw(image, [left, top, fromWidth, fromHeight], width, height) {
  const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
  context.imageSmoothingQuality = 'high';
  context.drawImage(image, left, top, fromWidth, fromHeight, 0, 0, width, height);
  return context.getImageData(0, 0, width, height);
}

/** Red, green, blue and alpha of an ImageData, from 0 to 255. */
export function planes({ data, width, height }) {
  const channels = Array.from({ length: 4 }, () => new Float32Array(width * height));
  for (let i = 0; i < data.length; i++) {
    channels[i & 3][i >> 2] = data[i];
  }
  return { width, height, channels };
}

/** An ImageData again. Values beyond 0 to 255 are clamped, the others rounded. */
export function toPixels({ width, height, channels }) {
  const data = new Uint8ClampedArray(width * height * 4);
  for (let i = 0; i < data.length; i++) {
    data[i] = channels[i & 3][i >> 2];
  }
  return new ImageData(data, width, height);
}

/** Shows pixels on a canvas, which takes their size. */
export function show(canvas, pixels) {
  if (canvas.width !== pixels.width || canvas.height !== pixels.height) {
    canvas.width = pixels.width;
    canvas.height = pixels.height;
  }
  canvas.getContext('2d', { willReadFrequently: true }).putImageData(pixels, 0, 0);
}
