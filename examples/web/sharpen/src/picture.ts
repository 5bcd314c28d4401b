// A picture to begin with: rings, which show a blur well.

export function rings(width: number, height: number): ImageData {
  const image = new ImageData(width, height);
  for (let row = 0; row < height; row++) {
    for (let col = 0; col < width; col++) {
      const distance = Math.hypot(row - height / 2, col - width / 2);
      const value = 128 + 40 * Math.sin(distance / 4);
      image.data.set([value, 255 - value, 160, 255], (row * width + col) * 4);
    }
  }
  return image;
}
