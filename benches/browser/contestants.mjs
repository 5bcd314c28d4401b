// Who takes part, in the order of the table's columns.

export const contestants = [
  { name: 'relampago', module: 'relampago', build: 'relaxed', ours: true, hasThreads: true },
  { name: 'relampago, simd128', module: 'relampago', build: 'simd128', ours: true, hasThreads: true },
  { name: 'onnxruntime-web', module: 'ort', package: 'onnxruntime-web', hasThreads: true },
  { name: 'tfjs-wasm', module: 'tfjs', package: '@tensorflow/tfjs-backend-wasm', hasThreads: true },
  { name: 'jax-js', module: 'jax', package: '@jax-js/jax', hasThreads: true },
  { name: 'plain JS', module: 'plain' },
];

// What a page needs to know about its contestant.
export function query({ module, build = '' }, threads) {
  return new URLSearchParams({ module, build, threads });
}
