// Loads models from servers that behave and from servers that do not, in Node and on pages.

/** Lowers what the tests would wait for: 64 KiB a part, so that a tiny model has several. `host` is internal. */
export function hurry({ host }) {
  host.download = { partBytes: 65_536, attempts: 3, waitMs: 5, silenceMs: 1000 };
}

/** Loads a model and lets it answer. `abortAfter` is the number of bytes after which loading is aborted. */
export async function visit({ LanguageModel }, source, { abortAfter, ...options } = {}) {
  const controller = new AbortController();
  const steps = [];
  const onProgress = (step) => {
    steps.push(step);
    if (step.loaded > abortAfter) {
      controller.abort();
    }
  };
  try {
    const model = await LanguageModel.load(source, { ...options, signal: controller.signal, onProgress });
    const text = await model.complete('hello', { max_tokens: 8 }).text();
    const { source: from, cached } = model.info;
    model.dispose();
    return { text, from, cached, last: steps.at(-1), restarts: restarts(steps) };
  } catch (error) {
    return { error: `${error.code}: ${error.message}`, loaded: steps.at(-1)?.loaded ?? 0 };
  }
}

/** The number of times that progress went back. */
const restarts = (steps) => steps.filter(({ loaded }, i) => i > 0 && loaded <= steps[i - 1].loaded).length;
