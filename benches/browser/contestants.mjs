// Who takes part, in the order of the table's columns.

export const contestants = [
  { name: 'relampago', module: 'relampago', build: 'relaxed', ours: true, hasThreads: true },
  { name: 'relampago, simd128', module: 'relampago', build: 'simd128', ours: true, hasThreads: true },
  { name: 'onnxruntime-web', module: 'ort', package: 'onnxruntime-web', hasThreads: true },
  { name: 'tfjs-wasm', module: 'tfjs', package: '@tensorflow/tfjs-backend-wasm', hasThreads: true },
  { name: 'jax-js', module: 'jax', package: '@jax-js/jax', hasThreads: true },
  { name: 'plain JS', module: 'plain' },
];

// The same on a GPU. The first of ours leaves the choice to the library's policy.
export const gpuContestants = [
  { name: 'relampago', module: 'relampago', build: 'relaxed', backend: 'auto', ours: true },
  { name: 'relampago, GPU', module: 'relampago', build: 'relaxed', backend: 'gpu', ours: true },
  // Products only, where the browser offers matrices of subgroups; off by f16's roundings.
  { name: 'relampago, f16', module: 'relampago', build: 'relaxed', backend: 'gpu', halves: 'yes', ours: true, tolerance: 2 ** -10 },
  { name: 'onnxruntime-web, WebGPU', module: 'ort_gpu', package: 'onnxruntime-web' },
  { name: 'tfjs-webgpu', module: 'tfjs_gpu', package: '@tensorflow/tfjs-backend-webgpu' },
  { name: 'jax-js, WebGPU', module: 'jax', backend: 'webgpu', package: '@jax-js/jax' },
];

// The same with several numbers of threads, on machines that have as many cores.
export const threadContestants = [1, 2, 4, 8].flatMap((threads) => [
  { name: `relampago, ${threads}`, module: 'relampago', build: 'relaxed', ours: true, threads },
  { name: `onnxruntime-web, ${threads}`, module: 'ort', package: 'onnxruntime-web', threads },
]);

// What a page needs to know about its contestant.
export function query({ module, build = '', backend = '', halves = '' }, threads) {
  return new URLSearchParams({ module, build, backend, halves, threads });
}
