// Milliseconds from asking for the package to holding a first 256 × 256 product.

async function firstProduct(backend) {
  const side = 256;
  const matrix = Float32Array.from({ length: side * side }, (_, i) => Math.sin(i));
  const started = performance.now();
  const { default: init, GpuDevice } = await import('./relampago/index.js');
  await init();
  const device = await GpuDevice.create({ backend });
  const product = await device.matmul(matrix, matrix, side, side, side);
  return { backend: device.backend, milliseconds: performance.now() - started, corner: product[0] };
}

globalThis.outcome = firstProduct(new URLSearchParams(location.search).get('backend'));
