// Everything that `relampago/ptx` offers, as data that a test can look at.

/** Each is a kernel of `examples/ptx_bundle.rs`, written for the same target. */
export const TARGET = 'sm_90a';
export const DESCRIPTIONS = [
  { kernel: 'gemm_naive' },
  { kernel: 'gemm_tiled' },
  { kernel: 'gemm_tiled', tile: 'small', aligned: true },
  { kernel: 'gemm_wmma', output: 'f32' },
  { kernel: 'gemm_wmma', output: 'f16', aligned: true },
  { kernel: 'gemm_mma', type: 'bf16' },
  { kernel: 'gemm_mma', type: 'f32' },
  { kernel: 'gemm_wgmma', type: 'bf16' },
  { kernel: 'gemm_wgmma', type: 'f16', cols: 128 },
  { kernel: 'gemm_wgmma', type: 'f32' },
  { kernel: 'gemm_wgmma_split', type: 'f16', cols: 128 },
  { kernel: 'gemm_split_sum', output: 'bf16' },
  { kernel: 'softmax', cols: 1024 },
  { kernel: 'softmax', cols: 65536 },
  { kernel: 'layer_norm', cols: 4096 },
  { kernel: 'rms_norm', cols: 16384 },
  { kernel: 'softmax', cols: 4, stage: 'statistics' },
  { kernel: 'rms_norm', cols: 4, stage: 'rest' },
  { kernel: 'attention_simple', dim: 128 },
  { kernel: 'attention_flash', type: 'bf16', dim: 64, causal: true },
  { kernel: 'attention_flash_mma', type: 'bf16', dim: 128 },
  { kernel: 'attention_flash_tiled', dim: 64, causal: true },
  { kernel: 'attention_decode', type: 'bf16', dim: 128, group: 4 },
  { kernel: 'attention_decode_sum', type: 'bf16', dim: 128 },
  { kernel: 'dequantize', format: 'q6_k' },
  { kernel: 'quantized_gemv', format: 'q4_k' },
  { kernel: 'quantized_gemv', format: 'q8_0', tensorCores: true },
  { kernel: 'quantized_gemm', format: 'q5_k', type: 'bf16', m: 64, n: 4096 },
  { kernel: 'reduce', reduction: 'sum' },
  { kernel: 'reduce', reduction: 'dot', parts: true },
  { kernel: 'rope', dim: 128, pairs: 'halves', type: 'bf16' },
  { kernel: 'activation', function: 'gelu_tanh' },
  { kernel: 'unary', function: 'exp' },
  { kernel: 'binary', function: 'swi_glu' },
];

/** What is refused, and why. */
const WRONG = {
  'no object': [undefined],
  'no such kernel': [{ kernel: 'fft' }],
  'no such option': [{ kernel: 'softmax', columns: 4 }],
  'no such type': [{ kernel: 'gemm_mma', type: 'f8' }],
  'another type': [{ kernel: 'gemm_mma', type: 'u8' }],
  'a missing option': [{ kernel: 'dequantize' }],
  'a size that is none': [{ kernel: 'attention_simple', dim: 1.5 }],
  'a size beyond its limit': [{ kernel: 'attention_simple', dim: 512 }],
  'no such target': [{ kernel: 'softmax' }, 'sm_61'],
  'no target': [{ kernel: 'softmax' }, 90],
  'too early a target': [{ kernel: 'gemm_wgmma', type: 'bf16' }, 'sm_80'],
};

function refusal(call) {
  try {
    call();
  } catch (error) {
    return { name: error.name, code: error.code, message: error.message };
  }
  return 'accepted';
}

export async function runPtx(ptx) {
  await ptx.default();
  const kernels = DESCRIPTIONS.map((description) => {
    const { name, target, text, params, launch, registers, sharedBytes, dynamicSharedBytes } =
      ptx.buildKernel(description, TARGET);
    return { description, name, target, text, params, launch, registers, sharedBytes, dynamicSharedBytes };
  });
  const product = ptx.buildKernel({ kernel: 'gemm_tiled', batched: true, epilogue: { bias: true, activation: 'relu' } });
  const module = new ptx.PtxModule('sm_80');
  module.add(product);
  module.add(ptx.buildKernel({ kernel: 'softmax', log: true }));
  const freed = ptx.buildKernel({ kernel: 'softmax' });
  freed.free();
  freed.free();
  freed[Symbol.dispose]?.();
  return {
    kernels,
    targets: ptx.targetNames(),
    product: { name: product.name, target: product.target, params: product.params.map(({ name }) => name) },
    grid: [...product.grid({ m: 1000, n: 300, k: 5, batch: 3 }, 132)],
    emptyGrid: [...product.grid({ m: 0, n: 300, k: 5, batch: 3 }, 132)],
    module: module.text,
    refused: {
      ...Object.fromEntries(Object.entries(WRONG).map(([what, args]) => [what, refusal(() => ptx.buildKernel(...args))])),
      'a size that is missing': refusal(() => product.grid({ m: 1, n: 1, batch: 1.5 }, 132)),
      'too many matrices': refusal(() => product.grid({ m: 1, n: 1, batch: 65536 }, 132)),
      'no sizes': refusal(() => product.grid(undefined, 132)),
      'no multiprocessors': refusal(() => product.grid({ m: 1, n: 1, batch: 1 }, -1)),
      'what was freed': refusal(() => freed.text),
      'what was freed as an argument': refusal(() => module.add(freed)),
      'the same twice': refusal(() => module.add(product)),
    },
  };
}
