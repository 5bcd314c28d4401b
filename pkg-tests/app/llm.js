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

/**
 * The logits of some ids after the last tokens of texts, and the id of the largest: of each text its tokens, and for each of
 * the last tokens the ids. The first result of a text has these tokens read at once, the second one by one.
 */
export async function logits({ LanguageModel }, source, texts, options) {
  const model = await LanguageModel.load(source, options);
  const results = [];
  for (const { tokens, ids } of texts) {
    const before = tokens.length - ids.length;
    const last = tokens.slice(before);
    const session = await model.session();
    before && await session.prefill(tokens.slice(0, before));
    const rows = await session.logits(last);
    const vocabulary = rows.length / last.length;
    const seen = (row, some) => ({ logits: some.map((id) => row[id]), largest: row.indexOf(row.reduce((a, b) => Math.max(a, b))) });
    const together = ids.map((some, i) => seen(rows.subarray(i * vocabulary, (i + 1) * vocabulary), some));
    await session.rewind(before);
    const alone = [];
    for (const [i, token] of last.entries()) {
      alone.push(seen(await session.decode(token), ids[i]));
    }
    session.dispose();
    results.push([together, alone]);
  }
  const { info } = model;
  model.dispose();
  return { info, results };
}

/** The order in which requests end: those that are aborted or left do not wait for the answer before them. */
async function withoutWaiting(model) {
  const order = [];
  const ended = (name) => () => order.push(name);
  const controller = new AbortController();
  const { signal } = controller;
  const first = model.complete('hello', { max_tokens: 50 }).text().then(ended('answer'));
  const aborted = model.complete('hello', { max_tokens: 5, signal }).text().catch(ended('aborted'));
  const embedded = model.embed(['hello', 'hello'], { signal }).catch(ended('embedded'));
  const iterator = model.complete('hello', { max_tokens: 5 })[Symbol.asyncIterator]();
  const left = iterator.return().then(ended('left'));
  controller.abort();
  await Promise.all([first, aborted, embedded, left]);
  return { last: order.at(-1), others: order.slice(0, -1).sort(), done: (await iterator.next()).done };
}

/** Answers of sessions, beside those of the model and beside sessions that read the same tokens. */
async function sessionAnswers(model, bytes, lora) {
  const options = { max_tokens: 4 };
  const session = await model.session();
  const answer = session.complete('hello', options);
  const result = { first: await answer.text(), finish_reason: answer.finish_reason };
  const prompt = await model.tokenize('hello');
  const [read, all] = [await session.tokens(), [...prompt, ...answer.tokens]];
  result.hasAnswer = read.join() === all.slice(0, -1).join();
  const fork = await session.fork();
  const longer = 'hello there';
  const right = await model.complete(longer, options).text();
  result.same = [await session.complete(longer, options).text(), await fork.complete(longer, options).text()].every((text) => text === right);

  // What is refused leaves the session as it was.
  const before = (await session.tokens()).join();
  result.refused = await outcome(() => session.complete(longer, { top_p: 2 }).text());
  result.long = await outcome(() => session.complete('words '.repeat(99)).text());
  result.schema = await outcome(() => session.complete('x', { response_format: { type: 'json_schema', json_schema: { schema: { not: {} } } } }).text());
  result.isKept = (await session.tokens()).join() === before;
  result.adapters = await outcome(async () => session.complete(longer, { lora }).text());
  const controller = new AbortController();
  const aborted = session.complete(longer, { ...options, signal: controller.signal });
  for await (const _ of aborted) {
    controller.abort();
    break;
  }
  result.isWhole = (await session.complete(longer, options).text()) === right;

  // An answer does not wait for those after it, and a session may be disposed of while it answers.
  const order = [];
  const answers = [session.complete(longer, options), model.complete(longer, { max_tokens: 20 })];
  await Promise.all(answers.map((one, i) => one.text().then(() => order.push(i))));
  result.order = order.join();
  const closing = await model.session();
  const closed = closing.complete('hello', options).text();
  closing.dispose();
  result.closed = (await closed.catch(({ code }) => code)) === result.first;

  const [cut, alone] = [await model.session(), await model.session()];
  await cut.prefill([5, 6, 7, 8, 9]);
  const logits = await cut.remove(1, 3);
  const others = await alone.prefill([5, 8, 9]);
  result.removed = logits.every((x, i) => Math.abs(x - others[i]) < 1e-3) && (await cut.tokens()).join();
  result.range = await outcome(() => cut.remove(2, 3));
  await model.reload(bytes);
  result.afterReload = (await session.tokens()).length > prompt.length && (await session.complete(longer, options).text()) === right;
  [session, fork, cut, alone].forEach((one) => one.dispose());
  result.disposed = await outcome(() => session.complete('hello').text());
  return result;
}

/** Adapters, sessions, embeddings and probabilities, on a tiny model. */
export async function deeper({ LanguageModel }, bytes, adapter, options) {
  const model = await LanguageModel.load(bytes, { ...options, contextLength: 64 });
  const result = { errors: {} };
  const { errors } = result;
  const text = async (more) => model.complete('hello', { max_tokens: 8, ...more }).text();
  const lora = await model.loadLora(adapter);
  result.layers = lora.layers;
  result.plain = await text();
  result.adapted = await text({ lora: { lora, scale: 2 } });
  result.again = await text();

  const tokens = await model.tokenize('hello');
  const session = await model.session();
  result.logits = [...(await session.prefill(tokens))];
  const saved = await session.save();
  const fork = await session.fork();
  await fork.decode(1);
  await session.rewind(1);
  const rows = await session.logits(tokens.subarray(1));
  result.rewound = rows.slice(-result.logits.length).every((x, i) => Math.abs(x - result.logits[i]) < 1e-3);
  const loaded = await model.loadSession(saved);
  result.loaded = [...(await loaded.tokens())];
  result.same = (await loaded.decode(1)).join() === (await session.decode(1)).join();
  result.forked = [...(await fork.tokens())];

  [result.vector] = await model.embed(['hello'], { pooling: 'mean' });
  result.vector = [...result.vector];
  const answer = model.complete('hello', { max_tokens: 2, logprobs: true, top_logprobs: 2 });
  await answer.text();
  result.logprobs = answer.logprobs;
  result.words = await Promise.all(answer.tokens.map((id) => model.detokenize([id])));
  result.ids = answer.tokens;
  const forbidden = model.complete('hello', { max_tokens: 1, logit_bias: { [answer.tokens[0]]: -100 } });
  await forbidden.text();
  result.otherToken = forbidden.tokens[0] !== answer.tokens[0];

  const after = await model.complete('hello', { max_tokens: 8, after: answer.tokens, lora: [] }).text();
  result.continued = result.plain.endsWith(after) && after.length < result.plain.length;
  const resumed = model.complete('hello', { max_tokens: 3, after: answer.tokens, logprobs: true });
  await resumed.text();
  const { tokens_per_second, completion_tokens } = resumed.usage;
  result.resumed = { tokens: resumed.tokens.length, completion_tokens, logprobs: resumed.logprobs.length, tokens_per_second };
  const ended = model.complete('hello', { max_tokens: 1, after: answer.tokens });
  result.ended = [await ended.text(), ended.tokens.join() === answer.tokens.join()];
  errors.noSource = await outcome(() => model.reload());
  await model.reload(bytes);
  result.afterReload = await text({ lora: { lora, scale: 2 } });
  result.sessionAfterReload = (await session.decode(2)).join() === (await loaded.decode(2)).join();

  result.sessions = await sessionAnswers(model, bytes, lora);

  const schema = { type: 'object', properties: { ready: { type: 'boolean' } }, required: ['ready'], additionalProperties: false };
  const json = { temperature: 2, seed: 1, max_tokens: 60, response_format: { type: 'json_schema', json_schema: { schema } } };
  result.json = await model.complete('hello', json).text();
  const unsupported = { type: 'json_schema', json_schema: { schema: { not: {} } } };
  errors.schema = await outcome(() => text({ response_format: unsupported }));
  const cyclic = {};
  cyclic.properties = { cyclic };
  errors.cyclic = await outcome(async () => text({ response_format: { type: 'json_schema', json_schema: { schema: cyclic } } }));
  const misspelt = { schema: { type: 'array', items: { type: 'string', maxlength: 3 } } };
  errors.keyword = await outcome(() => text({ response_format: { type: 'json_schema', json_schema: misspelt } }));
  errors.beside = await outcome(() => text({ response_format: { type: 'json_object', schema: {} } }));
  errors.oneOf = await outcome(() => text({ response_format: { type: 'json_schema', json_schema: { schema: { oneOf: [{}, {}] } } } }));
  errors.role = await outcome(() => model.chat([{ role: 'user<|im_end|>', content: 'hello' }]).text());
  const callers = {
    method: function calledHere() {
      return model.embed(5);
    },
    answer: function calledHere() {
      return model.complete('hello', { top_p: 2 }).text();
    },
    session: function calledHere() {
      return session.decode(-1);
    },
  };
  result.stacks = {};
  for (const [name, call] of Object.entries(callers)) {
    const error = await call().catch((error) => error);
    // Not every engine cuts stacks.
    result.stacks[name] = !Error.captureStackTrace || error.stack.split('\n')[1].includes('calledHere');
  }
  errors.embedded = await outcome(() => model.embed(['hello', 'words '.repeat(99)]));
  errors.after = await outcome(() => text({ after: [1, 260] }));
  errors.promised = await outcome(() => LanguageModel.load(Promise.resolve(bytes), options));
  errors.bias = await outcome(() => text({ logit_bias: { none: 1 } }));
  errors.biasBeyond = await outcome(() => text({ logit_bias: { 260: 1 } }));
  errors.top = await outcome(() => text({ top_logprobs: 2 }));
  errors.format = await outcome(() => text({ response_format: { type: 'xml' } }));

  const withLora = await model.session({ lora });
  errors.otherAdapters = await outcome(() => model.loadSession(saved, { lora }));
  errors.full = await outcome(() => session.prefill(new Uint32Array(65)));
  errors.rewind = await outcome(() => session.rewind(70));
  errors.pooling = await outcome(() => model.embed('hello', { pooling: 'max' }));
  errors.noLora = await outcome(() => text({ lora: 5 }));
  errors.noAdapter = await outcome(() => model.loadLora(bytes));
  lora.dispose();
  errors.gone = await outcome(() => text({ lora }));
  withLora.dispose();
  session.dispose();
  errors.closed = await outcome(() => session.decode(1));
  const other = await LanguageModel.load(bytes, options);
  errors.foreign = await outcome(async () => other.complete('hello', { lora }).text());
  other.dispose();
  model.dispose();
  errors.disposed = await outcome(() => fork.decode(1));
  return result;
}

/** Split files, inspections and explanations. `at` returns a source of a file by its name, and `bytesOf` its bytes. */
export async function files({ LanguageModel }, at, bytesOf, options) {
  const names = [1, 2, 3].map((part) => `tiny-0000${part}-of-00003.gguf`);
  const parts = await Promise.all(names.map(bytesOf));
  const steps = [];
  const text = async (source, more) => {
    const model = await LanguageModel.load(source, { ...options, ...more });
    const answer = await model.complete('hello', { max_tokens: 8 }).text();
    const { info } = model;
    model.dispose();
    return { answer, info };
  };
  const result = { errors: {}, size: parts.reduce((sum, part) => sum + part.length, 0) };
  const named = await text(at(names[0]), { onProgress: (step) => steps.push(step) });
  result.named = named.answer;
  result.splitInfo = named.info;
  result.progress = { first: steps[0], last: steps.at(-1) };
  result.listed = (await text(parts.map((part) => new Blob([part])))).answer;
  result.mixed = (await text([at(names[0]), ...parts.slice(1)])).answer;
  const { errors } = result;
  errors.order = await outcome(() => text([parts[0], parts[2], parts[1]]));
  errors.missing = await outcome(() => text(parts.slice(0, 2)));
  errors.first = await outcome(() => text(at(names[1])));
  errors.none = await outcome(() => text([]));

  const { worker } = options;
  result.inspected = await LanguageModel.inspect(at('tiny.gguf'), { worker, contextLength: 64 });
  result.inspectedSplit = await LanguageModel.inspect(at(names[0]), { worker });
  result.inspectedBytes = await LanguageModel.inspect(await bytesOf('tiny.gguf'), { worker });
  const model = await LanguageModel.load(at('tiny.gguf'), { ...options, contextLength: 64 });
  result.info = model.info;
  result.explained = await model.explain();
  model.dispose();
  errors.noModel = await outcome(() => LanguageModel.inspect(new Uint8Array(100), { worker }));
  errors.context = await outcome(() => LanguageModel.inspect(at('tiny.gguf'), { worker, contextLength: 10_000 }));
  errors.aborted = await outcome(() => LanguageModel.inspect(at('tiny.gguf'), { worker, signal: AbortSignal.abort() }));
  errors.option = await outcome(() => LanguageModel.inspect(at('tiny.gguf'), { device: 'gpu' }));
  errors.explain = await outcome(() => model.explain());
  return result;
}

/** Messages and options as OpenAI's clients write them, beside plain ones. */
async function openai(model) {
  const chat = async (messages, options, one = model) => one.chat(messages, { max_tokens: 4, ...options }).text();
  const parts = [{ type: 'text', text: 'hel' }, { type: 'text', text: 'lo' }];
  const plain = [{ role: 'user', content: 'hello' }];
  const calling = (content) => [{ role: 'user', content: 'a' }, { role: 'assistant', content, tool_calls: [] }, { role: 'user', content: 'b' }];
  const right = await chat(plain);
  const session = await model.session();
  const limited = model.complete('hello', { max_completion_tokens: 3 });
  await limited.text();
  const result = {
    parts: (await chat([{ role: 'user', content: parts }])) === right,
    nothing: (await chat(calling(null))) === (await chat(calling(''))) && (await chat(calling([]))) === (await chat(calling(''))),
    session: (await chat([{ role: 'user', content: parts }], {}, session)) === right,
    streams: [],
    length: limited.tokens.length,
  };
  for (const stream of [true, false]) {
    result.streams.push((await chat(plain, { stream })) === right);
  }
  session.dispose();
  return result;
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

  result.openai = await openai(model);

  const sampled = { temperature: 1, top_p: 0.9, seed: 7, max_tokens: 12 };
  const described = async () => {
    const answer = model.complete('hello', { ...sampled, logprobs: true });
    return JSON.stringify([await answer.text(), answer.logprobs]);
  };
  result.seeded = (await described()) === (await described());
  // Log-probabilities bring all logits to the host, which draws the same tokens as the GPU.
  const drawn = { ...sampled, top_k: 40, repetition_penalty: 1.2, logit_bias: { 70: 1, 71: -100 } };
  const texts = [{}, { logprobs: true }].map((more) => model.complete('hello', { ...drawn, ...more }).text());
  result.drawn = (await texts[0]) === (await texts[1]);
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
  result.contentStays = cancelled.content === await model.detokenize(cancelled.tokens);
  result.order = await withoutWaiting(model);
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
  const content = async (...messages) => outcome(async () => model.chat(messages));
  const image = [{ type: 'text', text: 'What is this?' }, { type: 'image_url', image_url: { url: 'a.png' } }];
  errors.nullContent = await content({ role: 'user', content: null });
  errors.image = await content({ role: 'system', content: 'x' }, { role: 'user', content: image });
  errors.part = await content({ role: 'user', content: [null] });
  errors.partText = await content({ role: 'user', content: [{ type: 'text' }] });
  errors.stream = await outcome(async () => model.complete('hello', { stream: 'yes' }));
  errors.bothNames = await outcome(async () => model.complete('hello', { max_completion_tokens: 5, max_tokens: 5 }));
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

/** Compares the tokens of texts with expected ones, by model; returns how many there are, and the texts whose tokens differ. */
export async function words({ LanguageModel }, at, { texts, tokens }, options) {
  const result = { compared: 0, different: [] };
  for (const [name, expected] of Object.entries(tokens)) {
    const model = await LanguageModel.load(at(`words-${name}.gguf`), { ...options, device: 'simd', cache: false });
    for (const [i, text] of texts.entries()) {
      const found = await model.tokenize(text);
      result.compared++;
      found.join() === expected[i].join() || result.different.push({ name, text });
    }
    model.dispose();
  }
  return result;
}

/** The ids and vectors of texts by an encoder, its vectors with options, and its errors. */
export async function encoder({ LanguageModel }, source, texts, options) {
  const model = await LanguageModel.load(source, { ...options, cache: false });
  const embed = async (list, how) => (await model.embed(list, how)).map((vector) => [...vector]);
  const result = { ids: [], errors: {} };
  for (const text of texts) {
    result.ids.push([...await model.tokenize(text)]);
  }
  const short = texts.filter((text) => text.length < 60);
  result.vectors = await embed(short);
  result.alone = [];
  for (const text of short) {
    result.alone.push(...await embed(text));
  }
  const [whole] = await embed('query: the model', { normalize: false, pooling: 'cls' });
  const [part] = await embed('the model', { prompt: 'query: ', normalize: false, pooling: 'cls', dimensions: 8 });
  result.cut = part.length === 8 && part.every((x, i) => Math.abs(x - whole[i]) < 1e-5);
  const long = 'x '.repeat(200);
  result.truncated = (await embed(long, { truncate: true }))[0].length;
  result.none = await embed([]);
  const { errors } = result;
  errors.long = await outcome(() => model.embed(['x', long]));
  errors.dimensions = await outcome(() => model.embed('x', { dimensions: 65 }));
  errors.chat = await outcome(() => model.chat([{ role: 'user', content: 'x' }]).text());
  errors.complete = await outcome(() => model.complete('x').text());
  errors.rank = await outcome(() => model.rank('q', ['x']));
  errors.session = await outcome(() => model.session());
  model.dispose();
  return result;
}

/** A model whose chat template makes lists in lists: its errors for a short and a long conversation, and after `reload`. */
export async function nested({ LanguageModel }, source, options) {
  const model = await LanguageModel.load(source, { ...options, cache: false });
  const chat = (content) => outcome(() => model.chat([{ role: 'user', content }], { max_tokens: 2 }).text());
  const result = { short: await chat('hello'), long: await chat('x'.repeat(400_000)) };
  // Without a reload.
  result.after = await chat('hello');
  result.again = await chat('x'.repeat(400_000));
  const format = { response_format: { type: 'json_schema', json_schema: { schema: { enum: [12] } } } };
  result.json = await outcome(() => model.complete('hello', format).text());
  result.text = await outcome(() => model.complete('hello', { max_tokens: 8 }).text());
  model.dispose();
  return result;
}

/**
 * Requests that are aborted while the model reads a long prompt: the milliseconds until a short request after them has been
 * answered, beside those of this request alone and of the long one.
 */
export async function abortedPrompts({ LanguageModel }, source, options) {
  const model = await LanguageModel.load(source, { ...options, contextLength: 2048 });
  const text = 'The old river runs past the mill and the quiet town. '.repeat(120);
  const timed = async (work) => {
    const start = performance.now();
    await work();
    return performance.now() - start;
  };
  const short = () => model.complete('Hello', { max_tokens: 1, seed: 1 }).text();
  await short();
  const result = { alone: await timed(short), whole: await timed(() => model.complete(text, { max_tokens: 1, seed: 1 }).text()), after: {} };
  const works = {
    answer: (signal) => model.complete(text, { max_tokens: 1, seed: 1, signal }).text(),
    embedding: (signal) => model.embed([text], { signal }),
  };
  for (const [name, work] of Object.entries(works)) {
    const controller = new AbortController();
    const aborted = outcome(() => work(controller.signal));
    await new Promise((resolve) => setTimeout(resolve, 100));
    controller.abort();
    result.after[name] = await timed(short);
    result[name] = await aborted;
  }
  model.dispose();
  return result;
}

/** A model without a chat template, on a page: the modules that are loaded before and after an answer by a JSON schema. */
export async function withoutTemplate({ LanguageModel }, source, options) {
  const modules = () => performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.endsWith('.wasm'));
  const model = await LanguageModel.load(source, { ...options, cache: false });
  const result = { hasChatTemplate: model.info.hasChatTemplate };
  result.text = await model.complete('hello', { max_tokens: 8 }).text();
  result.chat = await outcome(() => model.chat([{ role: 'user', content: 'hello' }]).text());
  result.before = modules();
  const answers = [1, 2].map((seed) => model.complete('hello', { seed, temperature: 1, max_tokens: 20, response_format: { type: 'json_object' } }).text());
  result.json = (await Promise.all(answers)).map((text) => text[0]);
  result.after = modules();
  model.dispose();
  return result;
}
