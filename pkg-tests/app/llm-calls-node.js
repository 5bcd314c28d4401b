// node llm-calls-node.js FILE WORKER: calls of functions by SmolLM2.

import { LanguageModel } from 'relampago/llm';

const [file, worker] = process.argv.slice(2);
const outcome = (work) => work().then(() => 'no error', ({ code, message }) => `${code}: ${message}`);
const model = await LanguageModel.load(file, { worker: worker === 'true', threads: 1 });

const properties = { city: { type: 'string', maxLength: 20 }, days: { type: 'integer', minimum: 1, maximum: 7 } };
const parameters = { type: 'object', properties, required: ['city', 'days'] };
const tools = [{ type: 'function', function: { name: 'weather', description: 'The weather of some days.', parameters } }];
const question = { role: 'user', content: 'What will the weather be in Paris in the next two days?' };
const options = { tools, tool_choice: 'required', parallel_tool_calls: false, max_tokens: 100, temperature: 0.5, seed: 3 };

const result = {};
const streamed = model.chat([question], options);
const deltas = [];
for await (const delta of streamed.deltas()) {
    deltas.push(delta);
}
const whole = model.chat([question], options);
result.text = await whole.text();
result.whole = whole.message;
result.streamed = streamed.message;
result.first = deltas[0].tool_calls[0].function;
result.joined = deltas.map(({ tool_calls }) => tool_calls[0].function.arguments).join('');
result.reason = whole.finish_reason;
[result.again] = await Array.fromAsync?.(whole.deltas()) ?? [undefined];

// The result of the call, and an answer without calls.
const { id } = whole.tool_calls[0];
const messages = [question, whole.message, { role: 'tool', tool_call_id: id, content: 'It rains on both days.' }];
const session = await model.session();
const last = session.chat(messages, { tools, max_tokens: 40 });
result.last = [await last.text(), last.finish_reason];

const chat = (messages, options) => outcome(() => model.chat(messages, { max_tokens: 1, ...options }).text());
const badCall = { role: 'assistant', content: null, tool_calls: [{ id: 'x', type: 'function', function: { name: 'f' } }] };
result.errors = {
    choice: await chat([question], { tools, tool_choice: { type: 'function', function: { name: 'other' } } }),
    word: await chat([question], { tools, tool_choice: 'always' }),
    name: await chat([question], { tools: [{ type: 'function', function: { name: 'a b' } }] }),
    list: await chat([question], { tools: {} }),
    schema: await chat([question], { tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'text' } } }] }),
    call: await chat([question, badCall]),
    format: await chat([question], { tools, tool_format: 'xml' }),
    variables: await chat([question], { chat_template_kwargs: { messages: [] } }),
    text: await outcome(async () => model.complete('hello', { tools })),
    after: await chat([question]),
};
model.dispose();
console.log(JSON.stringify(result));
