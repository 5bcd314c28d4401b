// Milliseconds from asking for the package to holding a first 256 × 256 product, step by step.

async function firstProduct(backend) {
  const side = 256;
  const matrix = Float32Array.from({ length: side * side }, (_, i) => Math.sin(i));
  const steps = {};
  let before = performance.now();
  const done = (step) => {
    const now = performance.now();
    [steps[step], before] = [now - before, now];
  };
  const { default: init, GpuDevice } = await import('./relampago/index.js');
  done('import');
  await init();
  done('init');
  const device = await GpuDevice.create({ backend });
  done('create');
  await device.matmul(matrix, matrix, side, side, side);
  done('product');
  return steps;
}

globalThis.outcome = firstProduct(new URLSearchParams(location.search).get('backend'));
