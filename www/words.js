// What went wrong, for people.

const MEANING = {
  DEVICE_LOST: 'The GPU went away: its driver restarted, or another program took it.',
  OUT_OF_MEMORY: 'There is not enough memory for this picture.',
  LIMIT_EXCEEDED: 'This picture is larger than the GPU takes.',
  UNSUPPORTED: 'This browser is too old: it lacks WebAssembly SIMD.',
  GPU: 'The GPU refused the work.',
};

/** An error in a sentence or two; the library's own words come last. */
export function explain(error) {
  const detail = sentence(error.message ?? String(error)).replace(/\.$/, '');
  if (error.code === 'NO_GPU') {
    return `${detail}. ${whyNoGpu()}`.trim();
  }
  return MEANING[error.code] ? `${MEANING[error.code]} (${detail})` : `${detail}.`;
}

/** What a visitor without a GPU might not know. */
function whyNoGpu() {
  if (!isSecureContext) {
    return 'Browsers give WebGPU only to pages that come over HTTPS.';
  }
  if (!navigator.gpu) {
    return 'This browser has no WebGPU, or has it switched off.';
  }
  return '';
}

/** Why a device is what it is, where `asked` was asked for. */
export function reasonFor({ reason, backend, software }, asked) {
  if (asked === 'gpu' && backend === 'simd') {
    return 'A GPU was asked for, but there is none to be had.';
  }
  const extra = () => (/software adapter/.test(reason) ? 'SIMD is faster than a GPU in software.' : whyNoGpu());
  if (asked === 'auto' && backend === 'simd') {
    return `${sentence(reason)}. ${extra()}`.trim();
  }
  return software ? `${sentence(reason)}; this one is a program on the CPU.` : `${sentence(reason)}.`;
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** A time with as many digits as mean something. */
export function inMilliseconds(value) {
  const digits = value < 1 ? 2 : value < 100 ? 1 : 0;
  return `${value.toFixed(digits)} ms`;
}
