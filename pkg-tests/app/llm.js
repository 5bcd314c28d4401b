// What the tests do with language models, in Node and on pages.

const outcome = (work) => work().then(() => 'no error', ({ code, message }) => `${code}: ${message}`);

/** Returns a greedy answer of `max_tokens` tokens, with its tokens, pieces and usage. */
async function greedy(model, request, max_tokens) {
  const options = { max_tokens, temperature: 0 };
  const generation = typeof request === 'string' ? model.complete(request, options) : model.chat(request, options);
  const pieces = [];
  for await (const piece of generation) {
    pieces.push(piece);
  }
  const { tokens, usage, finish_reason } = generation;
  return { pieces: pieces.length, joined: pieces.join(''), text: await generation.text(), tokens, usage, finish_reason };
}

/** Answers to prompts by the model at `source`. */
export async function answers({ LanguageModel }, source, requests, options) {
  const progress = [];
  const model = await LanguageModel.load(source, { ...options, onProgress: (step) => progress.push(step) });
  const results = [];
  for (const { request, max_tokens } of requests) {
    results.push(await greedy(model, request, max_tokens));
  }
  const { info } = model;
  const memory = await model.memoryBytes();
  model.dispose();
  return { info, memory, progress: { first: progress[0], last: progress.at(-1) }, results };
}

/** All of the interface, on a tiny model with the vocabulary of bytes. */
export async function everything({ LanguageModel, RelampagoError }, bytes, sources, options) {
  const result = { sources: {}, errors: {} };
  for (const [name, source] of Object.entries(sources)) {
    const model = await LanguageModel.load(source, options);
    result.sources[name] = await model.complete('hello', { max_tokens: 8 }).text();
    model.dispose();
  }
  const stayed = bytes.length;
  const model = await LanguageModel.load(bytes, { ...options, contextLength: 64 });
  result.bytesStay = bytes.length === stayed && bytes[0] === 71;
  result.info = model.info;
  result.tokens = [...(await model.tokenize('hello<|im_end|>'))];
  result.special = [...(await model.tokenize('hello<|im_end|>', { special: true }))];
  result.text = await model.detokenize(result.special);
  result.chat = (await greedy(model, [{ role: 'user', content: 'hello' }], 8)).tokens;

  const sampled = { temperature: 1, top_p: 0.9, seed: 7, max_tokens: 12 };
  result.seeded = (await model.complete('hello', sampled).text()) === (await model.complete('hello', sampled).text());
  const two = [model.complete('hello', { max_tokens: 6 }), model.complete('hello', { max_tokens: 6 })];
  const [first, second] = await Promise.all(two.map((each) => each.text()));
  result.together = first === second;

  const left = model.complete('hello', { max_tokens: 40 });
  for await (const _ of left) {
    break;
  }
  const controller = new AbortController();
  const cancelled = model.complete('hello', { max_tokens: 40, signal: controller.signal });
  result.errors.aborted = await outcome(async () => {
    for await (const _ of cancelled) {
      controller.abort(new Error('enough'));
    }
  });
  result.cancelledEarly = cancelled.tokens.length < 40;
  const reason = await cancelled.text().catch((error) => error.cause?.message);
  result.reason = reason;
  const after = await model.complete('hello', { max_tokens: 8 }).text();
  result.usableAfter = after === Object.values(result.sources)[0];

  const { errors } = result;
  errors.nearest = await outcome(async () => model.complete('hello', { maxTokens: 5 }));
  errors.temperature = await outcome(() => model.complete('hello', { temperature: -1 }).text());
  errors.type = await outcome(async () => model.complete('hello', { temperature: '1' }));
  errors.prompt = await outcome(async () => model.complete(5));
  errors.messages = await outcome(async () => model.chat([{ role: 'user' }]));
  errors.long = await outcome(() => model.complete('x'.repeat(65)).text());
  errors.empty = await outcome(() => model.complete('').text());
  errors.token = await outcome(() => model.detokenize([-1]));
  const halted = model.complete('hello', { max_tokens: 40 });
  const halting = outcome(() => halted.text());
  model.dispose();
  model.dispose();
  errors.halted = await halting;
  errors.disposed = await outcome(() => model.tokenize('hello'));
  errors.noModel = await outcome(() => LanguageModel.load(new Uint8Array(100), options));
  errors.short = await outcome(() => LanguageModel.load(bytes.subarray(0, 5000), options));
  errors.context = await outcome(() => LanguageModel.load(bytes, { ...options, contextLength: 10_000 }));
  errors.device = await outcome(() => LanguageModel.load(bytes, { ...options, device: 'cpu' }));
  errors.source = await outcome(() => LanguageModel.load(5, options));
  errors.loading = await outcome(() => LanguageModel.load(bytes, { ...options, signal: AbortSignal.abort() }));
  result.isError = await LanguageModel.load(new Uint8Array(100), options).catch((error) => error instanceof RelampagoError);
  return result;
}
