// Adapters that models learn; the caller brings the module, the models, and the options of `load`.

const codeOf = (promise) => promise.then(() => 'no error', ({ code, message }) => `${code}: ${message}`);

const conversation = [{ role: 'user', content: 'hello' }, { role: 'assistant', content: '12 o' }];
const examples = [conversation, 'naïve', { text: '東京 hello' }];
/** Those of `for_package` in tests/llm/tune.rs. */
const how = { rank: 5, alpha: 10, targets: 'all-linear', epochs: 8, learningRate: 1e-2, batch: 1, heldBack: 0.4, seed: 3 };

/** Teaches the tiny model, in parts too; `bytes` are those of its file. */
export async function taught({ LanguageModel, Lora, TunedLora }, source, bytes, options) {
  const model = await LanguageModel.load(source, options);
  const answerOf = (lora) => model.complete('hello', { lora, max_tokens: 8 }).text();
  const plain = await answerOf([]);
  const steps = [];
  const adapter = await model.tune(examples, { ...how, onStep: (step) => { steps.push(step); } });
  const adapted = await answerOf(adapter);
  const session = await model.session({ lora: adapter });
  const inSession = await session.complete('hello', { max_tokens: 8 }).text();
  const gguf = await model.loadLora(adapter.toGguf());
  const { lora_alpha: alpha, target_modules: targets } = JSON.parse(adapter.adapterConfig());
  const peft = await model.loadLora(adapter.toSafetensors(), { alpha });
  const result = {
    isLora: adapter instanceof Lora && adapter instanceof TunedLora,
    layers: adapter.layers,
    losses: [...adapter.losses],
    heldBackLosses: [...adapter.heldBackLosses],
    steps,
    plain,
    again: await answerOf([]),
    adapted,
    inSession,
    ofFiles: [await answerOf(gguf), await answerOf(peft)],
    targets: targets.length,
    // A GPU in software compiles the programs of each tuning for seconds.
    ...(options.device !== 'gpu' && {
      ...(await inParts(model, adapter)),
      errors: await mistakes(LanguageModel, model, bytes, options),
    }),
  };
  model.dispose();
  return result;
}

/** Goes on from a state, and learns an adapter further. */
async function inParts(model, adapter) {
  const begun = await model.tune(examples, { ...how, onStep: ({ step }) => step < 1 });
  const rest = await model.tune(examples, { ...how, resume: begun.state() });
  const further = await model.tune(examples, { ...how, epochs: 1, resume: adapter.toGguf() });
  return { begun: begun.losses.length, whole: [...begun.losses, ...rest.losses], further: further.losses[0] };
}

async function mistakes(LanguageModel, model, bytes, options) {
  const tune = (own, list = examples) => codeOf(model.tune(list, { ...how, ...own }));
  const controller = new AbortController();
  const abortAfterStep = { signal: controller.signal, epochs: 1000, onStep: () => controller.abort() };
  const errors = {
    empty: await tune({}, []),
    example: await tune({}, ['hello', 5]),
    nothing: await tune({}, ['hello', [{ role: 'user', content: 'hello' }]]),
    role: await tune({}, [[{ role: 'a b', content: 'x' }, { role: 'assistant', content: 'y' }]]),
    rank: await tune({ rank: 0 }),
    rate: await tune({ learningRate: -1 }),
    held: await tune({ heldBack: 1 }),
    target: await tune({ targets: ['q_proj', 'lm_head'] }),
    layers: await tune({ layers: [1, 3] }),
    range: await tune({ layers: 3 }),
    schedule: await tune({ schedule: 'cosin' }),
    unknown: await tune({ learning_rate: 1 }),
    resume: await tune({ resume: new Uint8Array(8) }),
    diverged: await tune({ alpha: 1e30 }),
    thrown: await tune({ onStep: () => { throw Object.assign(new Error('mine'), { code: 'MINE' }); } }),
    aborted: await tune(abortAfterStep),
    abortedBefore: await tune({ signal: AbortSignal.abort() }),
  };
  const ofBytes = await LanguageModel.load(bytes, options);
  errors.bytes = await codeOf(ofBytes.tune(examples, how));
  const again = await ofBytes.tune(examples, { ...how, epochs: 1, source: bytes });
  errors.foreign = await codeOf(Promise.resolve().then(() => model.complete('hello', { lora: again })));
  const running = codeOf(ofBytes.tune(examples, { ...how, epochs: 1000, source: bytes, onStep: () => ofBytes.dispose() }));
  errors.disposed = await running;
  return errors;
}

/** Teaches a model some texts; returns the losses and the speed. */
export async function losses({ LanguageModel }, source, texts, tuning, options) {
  const model = await LanguageModel.load(source, options);
  let last;
  const adapter = await model.tune(texts, { ...tuning, onStep: (step) => { last = step; } });
  const result = { losses: [...adapter.losses], tokensPerSecond: last.tokensPerSecond, info: model.info };
  model.dispose();
  return result;
}
