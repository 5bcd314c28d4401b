// What happens to models, adapters, sessions and matrices that end, and to arguments that change, while calls wait
// for their turn. It runs in Node and on pages; on a page, all models without a worker share its thread.

const outcome = (work) => work.then(() => 'no error', ({ code, message }) => `${code}: ${message}`);
const thrown = (work) => {
  try {
    work();
    return 'no error';
  } catch ({ code, message }) {
    return `${code}: ${message}`;
  }
};
const codes = async (works) => (await Promise.allSettled(works)).map(({ reason, value }) => (reason ? String(reason.code) : value));

const detach = (array) => structuredClone(array, { transfer: [array.buffer] });

/** A row of 32 weights: a scale of a half, and the numbers from 0. The product with ones is 248. */
const row = () => Uint8Array.from([0, 0x38, ...Array(32).keys()]);

const texts = (answers) => Promise.all(answers.map((answer) => answer.text()));

/** Matrices whose arguments change, and that are disposed of, after calls. */
export async function matrices({ QuantizedMatrix }, { worker, device }) {
  const make = (bytes = row()) => QuantizedMatrix.fromBlocks('Q8_0', bytes, 1, 32, { worker, device });
  const result = {};
  const matrix = await make();
  const x = new Float32Array(32);
  result.filled = await Promise.all([1, 2, 3].map((value) => matrix.matmul(x.fill(value))).map(async (y) => (await y)[0]));

  const changed = row();
  const making = make(changed);
  changed.fill(0);
  const other = await making;
  result.changed = [...(await other.matmul(new Float32Array(32).fill(1)))];
  other.dispose();

  const late = new Float32Array(32).fill(1);
  const product = matrix.matmul(late);
  detach(late);
  result.late = [...(await product)];
  const huge = { length: 2 ** 20 };
  result.errors = {
    detached: await outcome(matrix.matmul(late)),
    blocks: await outcome(make(late)),
    buffer: await outcome(make(late.buffer)),
    long: await outcome(matrix.matmul(Float32Array.from(huge, () => 1))),
    rows: await outcome(matrix.matmul(x, 2 ** 32 - 1)),
    short: await outcome(make(row().subarray(1))),
  };
  result.after = [...(await matrix.matmul(x.fill(1)))];

  // The last matrix takes its engine with it, but not before its calls have ended.
  const last = matrix.matmul(x);
  matrix.dispose();
  result.last = [...(await last)];
  result.disposed = await outcome(matrix.matmul(x));
  const [again, beside] = await Promise.all([make(), make()]);
  result.again = (await Promise.all([again, beside].map((one) => one.matmul(x)))).map(([y]) => y);
  again.dispose();
  beside.dispose();
  return result;
}

/** Two models that answer at the same time. */
export async function together({ LanguageModel }, source, options) {
  const models = await Promise.all([1, 2].map(() => LanguageModel.load(source, options)));
  const answers = await texts(models.map((model) => model.complete('hello', { max_tokens: 8 })));
  models.forEach((model) => model.dispose());
  return answers;
}

/** Models that are disposed of, or loaded anew, while sessions are read, saved and opened. */
export async function disposals({ LanguageModel }, source, options) {
  const load = () => LanguageModel.load(source, options);
  const model = await load();
  const session = await model.session();
  const calls = [session.prefill([1, 2, 3]), session.tokens(), model.session(), model.embed(['a', 'b'])];
  await null;
  model.dispose();
  const result = { disposed: await codes([...calls, model.tokenize('a'), session.save()]) };

  const opened = await load();
  const opening = opened.session();
  opened.dispose();
  result.opening = await codes([opening]);

  const reloaded = await load();
  const read = await reloaded.session();
  await read.prefill([1, 2, 3]);
  const reading = read.decode(4);
  await null;
  await reloaded.reload();
  // The call has ended before its engine, with its token, or with the engine, without it.
  const [ended] = await codes([reading]);
  const tokens = (await read.tokens()).join();
  result.reading = tokens === (ended === 'DISPOSED' ? '1,2,3' : '1,2,3,4');
  result.text = await reloaded.complete('hello', { max_tokens: 8 }).text();
  const saved = await read.save();
  const waiting = reloaded.complete('hello', { max_tokens: 2 }).text();
  const loading = reloaded.loadSession(saved);
  detach(saved);
  await waiting;
  result.loaded = (await (await loading).tokens()).join() === tokens;
  result.detached = await outcome(reloaded.loadSession(saved));
  reloaded.dispose();
  return result;
}

/** Reloads that fail, that are aborted and that run at the same time. */
export async function reloads({ LanguageModel }, source, options) {
  let loads = 0;
  const model = await LanguageModel.load(source, options);
  const text = () => model.complete('hello', { max_tokens: 8 }).text();
  const result = {};
  result.refused = await codes([model.reload(5)]);
  result.refused.push(...await codes([model.reload(source, { signal: AbortSignal.abort() })]));
  result.refused.push(...await codes([model.reload(new Uint8Array(0).buffer, { signals: 1 })]));
  result.refused.push(...await codes([model.reload(`absent-${source}`)]));
  result.tokens = [...(await model.tokenize('a'))];
  result.text = await text();
  const onProgress = ({ loaded, total }) => (loads += loaded === total);
  const controller = new AbortController();
  const calls = [1, 2, 3].map((i) => model.reload(undefined, { onProgress, signal: i === 2 ? controller.signal : undefined }));
  controller.abort();
  result.together = await codes(calls);
  result.loads = loads;
  result.again = await text();
  // A call that waits for one that is aborted loads by itself.
  const first = new AbortController();
  const aborted = model.reload(undefined, { signal: first.signal });
  const next = model.reload();
  first.abort();
  result.aborted = await codes([aborted, next]);
  result.last = await text();
  const flat = [];
  for (let i = 0; i < 6; i++) {
    await Promise.all([model.reload(), model.reload()]);
    flat.push(await model.memoryBytes());
  }
  result.isFlat = flat[5] === flat[1];
  model.dispose();
  return result;
}

/** Adapters that are disposed of before what uses them begins. `adapter` is the bytes of one. */
export async function adapters({ LanguageModel }, source, adapter, options) {
  const model = await LanguageModel.load(source, options);
  const load = () => model.loadLora(adapter);
  const complete = (lora) => model.complete('hello', { max_tokens: 8, lora: { lora, scale: 2 } });
  const result = {};
  const [early, other] = await Promise.all([load(), load()]);
  const answers = [complete(early), complete(early)];
  early.dispose();
  result.early = await texts(answers);
  result.disposed = thrown(() => complete(early));

  // A pending answer has its adapter after a reload, by whatever number.
  const pending = complete(other);
  const [first, second] = [await model.session({ lora: { lora: other, scale: 2 } }), await model.session()];
  other.dispose();
  await model.reload();
  result.pending = await pending.text();
  result.sessions = await texts([first, second].map((session) => session.complete('hello', { max_tokens: 8 })));
  const fork = await first.fork();
  first.dispose();
  await model.reload();
  result.fork = await fork.complete('hello', { max_tokens: 8 }).text();
  fork.dispose();
  model.dispose();
  return result;
}

/** What is refused with an error of the package. `adapter` is the bytes of one. */
export async function mistakes({ LanguageModel, Lora, QuantizedMatrix, Session }, source, adapter, options) {
  const model = await LanguageModel.load(source, options);
  const lora = await model.loadLora(adapter);
  const session = await model.session();
  const complete = (more) => thrown(() => model.complete('hello', more));
  const file = new Blob([adapter]);
  const controller = new AbortController();
  const loading = model.loadLora(file, { signal: controller.signal });
  controller.abort();
  const format = (schema) => ({ response_format: { type: 'json_schema', json_schema: { schema } } });
  const long = model.complete('hello', format({ not: {}, description: 'x'.repeat(1e5) }));
  const lost = new Uint8Array(8);
  detach(lost);
  const result = {
    option: complete({ lora: { lora, scal: 2 } }),
    scale: complete({ lora: { lora, scale: '2' } }),
    before: await outcome(model.loadLora(file, { signal: AbortSignal.abort() })),
    during: await outcome(loading),
    made: [LanguageModel, Lora, QuantizedMatrix, Session].map((Class) => thrown(() => new Class())),
    tokens: await outcome(session.prefill({ length: 2 ** 40 })),
    detokenized: await outcome(model.detokenize({ length: 2 ** 40 })),
    function: complete(format(() => 0)),
    toJSON: complete(format({ toJSON: () => undefined })),
    schema: await outcome(long.text()),
    bytes: await outcome(LanguageModel.load(lost, options)),
    buffer: await outcome(LanguageModel.load(lost.buffer, options)),
  };
  model.dispose();
  return result;
}
