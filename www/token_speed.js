// How long a small language model takes for a token.

import { entryAt } from './entry.js';
import { randomModel } from './random_model.js';
import { median } from './timing.js';

const ENTRY = new URL('relampago/llm/index.js', import.meta.url);
const NAME = 'token of a random model';
/** Any tokens of the vocabulary. */
const [FIRST, NEXT] = [1, 2];

/**
 * Returns the time from a token to the logits after it: `{ name, milliseconds, runs }`, or `{ name, error }` where the
 * back-end refuses the model. One thread computes, as in the other rows.
 * @param {'gpu' | 'simd'} device
 * @param {(text: string) => void} show Tells the visitor that the package is still being built.
 */
export async function tokenSpeed(device, show) {
  const { LanguageModel } = await entryAt(ENTRY, show);
  let model;
  try {
    model = await LanguageModel.load(randomModel(), { device, threads: 1 });
    const session = await model.session();
    await session.prefill([FIRST]);
    return { name: NAME, ...(await median(() => session.decode(NEXT))) };
  } catch ({ code, message }) {
    return { name: NAME, error: { code, message } };
  } finally {
    model?.dispose();
  }
}
