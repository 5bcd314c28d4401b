// Compiled, never run: the entry for language models, as `tsc --strict` sees it.

import init, { LanguageModel, Lora, RelampagoError, Session, TunedLora, moduleUrl } from 'relampago/llm';
import type { CachedModel, Delta, GenerateOptions, Generation, LoadProgress, Message, ModelExplanation, ModelInfo, ModelInspection, ModelStep, TokenLogprobs, Tool, ToolCall, TuneExample, TuneProgress, Usage } from 'relampago/llm';

type IsAny<T> = 0 extends 1 & T ? true : false;
function exactly<T>(_value: IsAny<T> extends true ? never : T): void {}

export async function everything(file: File, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  exactly<void>(await init(moduleUrl()));
  await LanguageModel.load(file);
  await LanguageModel.load(bytes);
  await LanguageModel.load(new URL('model.gguf', 'https://example.org/'));
  const model = await LanguageModel.load('model.gguf', {
    device: 'simd',
    signal,
    onProgress: (progress) => exactly<LoadProgress>(progress),
    contextLength: 512,
    cache: false,
    worker: false,
  });
  exactly<ModelInfo>(model.info);
  exactly<'gpu' | 'simd'>(model.info.backend);
  exactly<number>(model.info.parameters);
  exactly<'network' | 'cache' | 'local'>(model.info.source);
  exactly<boolean>(model.info.cached);
  await LanguageModel.load(['model-00001-of-00002.gguf', file]);
  const inspection = await LanguageModel.inspect([file, bytes], { contextLength: 512, signal, worker: false });
  exactly<ModelInspection>(inspection);
  exactly<number>(inspection.gpuBytes);
  exactly<string | undefined>(inspection.weightTypes[0]?.type);
  const explanation = await model.explain();
  exactly<ModelExplanation>(explanation);
  exactly<readonly ModelStep[]>(explanation.steps);
  exactly<number | null>(explanation.steps[0]!.layer);
  exactly<CachedModel[]>(await LanguageModel.cached());
  exactly<boolean>(await LanguageModel.evict('model.gguf'));
  const messages: Message[] = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Why?' }];
  const options: GenerateOptions = { max_tokens: 5, temperature: 0.5, top_p: 0.9, top_k: 40, min_p: 0.1, repetition_penalty: 1.1, seed: 1, stop: ['a'], signal };
  const answer = model.chat(messages, options);
  const parts: Message[] = [{ role: 'user', content: [{ type: 'text', text: 'Why?' }] }, { role: 'assistant', content: null }];
  model.chat(parts, { stream: true, max_completion_tokens: 5 });
  // @ts-expect-error images are not read
  model.chat([{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'a.png' } }] }]);
  exactly<Generation>(answer);
  for await (const text of answer) {
    exactly<string>(text);
  }
  exactly<number[]>(answer.tokens);
  exactly<Usage>(answer.usage);
  exactly<string>(answer.content);
  exactly<number | null>(answer.usage.tokens_per_second);
  exactly<'stop' | 'length' | 'tool_calls' | null>(answer.finish_reason);
  const tools: Tool[] = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
  const called = model.chat(messages, { tools, tool_choice: { type: 'function', function: { name: 'f' } }, parallel_tool_calls: false });
  for await (const delta of called.deltas()) {
    exactly<Delta>(delta);
  }
  exactly<ToolCall[]>(called.tool_calls);
  exactly<string>(called.reasoning_content);
  const results = called.tool_calls.map(({ id }): Message => ({ role: 'tool', tool_call_id: id, content: '' }));
  model.chat([...messages, called.message, ...results], { chat_template_kwargs: { enable_thinking: false }, tool_format: 'hermes' });
  exactly<string>(await model.complete('Once', { stop: '\n' }).text());
  exactly<Uint32Array>(await model.tokenize('text', { special: true }));
  exactly<string>(await model.detokenize([1, 2]));
  exactly<number>(await model.memoryBytes());
  const lora = await model.loadLora('adapter.gguf', { alpha: 16, signal });
  exactly<Lora>(lora);
  exactly<number>(lora.layers);
  model.complete('Once', { lora: [lora, { lora, scale: 0.5 }], logit_bias: { 5: -100 }, logprobs: true, top_logprobs: 3 });
  exactly<TokenLogprobs[]>(answer.logprobs);
  const examples: TuneExample[] = ['text', { text: 'text' }, messages, { messages }];
  const onStep = ({ loss, heldBackLoss }: TuneProgress) => loss > (heldBackLoss ?? 0);
  const tuned = await model.tune(examples, { rank: 4, targets: ['q_proj'], layers: [0, 2], resume: new Uint8Array(4), onStep, signal });
  exactly<TunedLora>(tuned);
  exactly<Float32Array>(tuned.losses);
  exactly<string>(tuned.adapterConfig());
  new Blob([tuned.toGguf(), tuned.toSafetensors(), tuned.state()]);
  model.complete('Once', { lora: tuned });
  exactly<void>(await model.reload());
  exactly<void>(await model.reload(file, { signal }));
  model.complete('Once', { after: answer.tokens, response_format: { type: 'json_object' } });
  model.complete('Once', { response_format: { type: 'json_schema', json_schema: { schema: { type: 'integer' } } } });
  const session = await model.session({ lora });
  exactly<Float32Array>(await session.prefill([1, 2]));
  exactly<Float32Array>(await session.decode(1));
  exactly<Uint32Array>(await session.tokens());
  exactly<Session>(await session.fork());
  exactly<Float32Array>(await session.remove(0, 1));
  exactly<string>(await session.chat([{ role: 'user', content: 'hello' }], { max_tokens: 4 }).text());
  // @ts-expect-error: the session's own adapters stay.
  session.complete('hello', { lora });
  const saved = await session.save();
  exactly<Session>(await model.loadSession(saved, { lora: { lora } }));
  new Blob([saved]);
  exactly<Float32Array[]>(await model.embed(['a', 'b'], { pooling: 'last', normalize: false }));
  exactly<void>(model.dispose());
}

export function wrong(model: LanguageModel, error: RelampagoError): void {
  exactly<string>(error.code);
  // @ts-expect-error options are in camel case
  model.tune(['text'], { learning_rate: 1 });
  // @ts-expect-error models are loaded
  new LanguageModel();
  // @ts-expect-error the option has OpenAI's name
  model.complete('Once', { maxTokens: 5 });
  // @ts-expect-error a message has a content
  model.chat([{ role: 'user' }]);
  // @ts-expect-error there is no such device
  LanguageModel.load('model.gguf', { device: 'cpu' });
}
