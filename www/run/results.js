// What a sample exports, as text and plans that a worker can send.

import { format } from './format.js';

/** Returns the name of each export with its text, or with its plan if it is one or can explain one. */
export function describe(exports) {
  return Promise.all(Object.entries(exports).map(async ([name, value]) => ({ name, ...(await described(value)) })));
}

async function described(value) {
  if (typeof value?.explain === 'function') {
    return { plan: await value.explain() };
  }
  if (Array.isArray(value?.kernels) && Array.isArray(value.buffers)) {
    return { plan: value };
  }
  if (Array.isArray(value?.shape) && typeof value.data === 'function') {
    const values = await value.data();
    return { text: `${value.dtype} [${value.shape.join(' × ')}]: ${format(values)}` };
  }
  return { text: format(value) };
}
