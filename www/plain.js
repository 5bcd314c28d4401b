// What one would write without a library: a convolution in plain JavaScript on Float32Arrays.
// The inner part of the picture is spared the test for its edges, so that this is a fair rival.

export function convolvePlain(input, { width, height }, { kernel, size }) {
  const output = new Float32Array(width * height);
  const reach = (size - 1) >> 1;
  for (let row = 0; row < height; row++) {
    const safeRow = row >= reach && row + reach < height;
    for (let col = 0; col < width; col++) {
      const safe = safeRow && col >= reach && col + reach < width;
      output[row * width + col] = safe
        ? inside(input, width, row - reach, col - reach, kernel, size)
        : atEdge(input, width, height, row - reach, col - reach, kernel, size);
    }
  }
  return output;
}

function inside(input, width, top, left, kernel, size) {
  let sum = 0;
  for (let y = 0; y < size; y++) {
    const from = (top + y) * width + left;
    for (let x = 0; x < size; x++) {
      sum += input[from + x] * kernel[y * size + x];
    }
  }
  return sum;
}

function atEdge(input, width, height, top, left, kernel, size) {
  let sum = 0;
  for (let y = Math.max(0, -top); y < size && top + y < height; y++) {
    for (let x = Math.max(0, -left); x < size && left + x < width; x++) {
      sum += input[(top + y) * width + left + x] * kernel[y * size + x];
    }
  }
  return sum;
}
