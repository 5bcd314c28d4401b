// One answer of one library: how long the file, the prompt and the answer take. With `hold` in the query, the page
// posts a word before and after each. With `to`, it sends the times to that URL.

import { deliver } from './deliver.js';

const query = Object.fromEntries(new URLSearchParams(location.search));
const tokens = Number(query.tokens);
const context = Number(query.context);
/** How tokens are chosen, as JSON. */
const sampling = { temperature: 0, ...JSON.parse(query.sampling ?? '{}') };
const threads = Number(query.threads ?? 1);
/** The ends of answers are forbidden, so that all answers are as long. */
const bias = query.ends ? Object.fromEntries(query.ends.split(',').map((id) => [id, -100])) : undefined;

/** How a library loads a model, and answers: that calls `first` for each piece of text. */
const contestants = {
  async relampago(model) {
    const { LanguageModel } = await import('./relampago/llm/index.js');
    return {
      load: () => LanguageModel.load(model, { device: query.device, contextLength: context, cache: false, threads }),
      async answer(loaded, first) {
        const answer = loaded.complete(query.prompt, { max_tokens: tokens, ...sampling, logit_bias: bias });
        for await (const _ of answer) {
          first();
        }
        return answer.usage;
      },
    };
  },

  async wllama(model) {
    const { Wllama } = await import('./wllama/index.js');
    const wllama = new Wllama({ default: new URL('./wllama/wasm/wllama.wasm', location).href }, { suppressNativeLog: true });
    return {
      async load() {
        const file = await (await fetch(model)).blob();
        await wllama.loadModel([file], { n_ctx: context, n_threads: threads, n_gpu_layers: 0 });
        return wllama;
      },
      async answer(loaded, first) {
        const request = { prompt: query.prompt, max_tokens: tokens, ...sampling, logit_bias: bias, stream: true };
        let usage = {};
        for await (const chunk of await loaded.createCompletion(request)) {
          first();
          const { timings } = chunk;
          if (timings) {
            usage = { prompt_tokens: timings.cache_n + timings.prompt_n, completion_tokens: timings.predicted_n };
          }
        }
        return usage;
      },
    };
  },
};

/** Times a load and an answer. */
async function timed({ load, answer }) {
  const began = performance.now();
  const loaded = await load();
  const ready = performance.now();
  let first;
  const { prompt_tokens, completion_tokens } = await answer(loaded, () => {
    first ??= performance.now();
  });
  const end = performance.now();
  return {
    load_ms: ready - began,
    runs: [{ prefill_ms: first - ready, decode_ms: end - first, n_prompt: prompt_tokens, n_gen: completion_tokens - 1 }],
  };
}

const say = (name) => fetch(name, { method: 'POST' });

/** Waits for whoever measures memory, before, between and after a load and an answer. */
async function hold({ load, answer }) {
  await say('empty');
  const loaded = await load();
  await say('loaded');
  await answer(loaded, () => {});
  await say('answered');
}

const contestant = contestants[query.contestant](new URL('model.gguf', location).href);
globalThis.outcome = contestant.then(query.hold ? hold : timed);
globalThis.outcome.then(deliver, (error) => deliver({ failure: String(error.stack ?? error) }));
