// OpenAI's client for JavaScript with the server: `npm install openai`, then `node loop.mjs http://127.0.0.1:8080/v1`.

import assert from 'node:assert/strict';
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.argv[2], apiKey: 'none' });
const model = (await client.models.list()).data[0].id;
const properties = { city: { type: 'string', maxLength: 20 }, days: { type: 'integer', minimum: 1, maximum: 7 } };
const calls = [];
const weather = ({ city, days }) => {
    assert(typeof city === 'string' && days >= 1 && days <= 7);
    calls.push({ city, days });
    return { city, forecast: Array(days).fill('rain') };
};
const tools = [{
    type: 'function',
    function: {
        name: 'weather',
        description: 'The weather of some days.',
        parameters: { type: 'object', properties, required: ['city', 'days'] },
        parse: JSON.parse,
        function: weather,
    },
}];
const messages = [{ role: 'user', content: 'What will the weather be in Paris in the next two days?' }];

// The client's own loop: it calls the function and sends its result back.
const tool_choice = { type: 'function', function: { name: 'weather' } };
const runner = client.chat.completions.runTools({ model, messages, tools, tool_choice, temperature: 0, max_tokens: 200 });
await runner.done();
assert.equal(calls.length, 1);
assert(runner.messages.some(({ role }) => role === 'tool'));

// A streamed answer.
const stream = client.chat.completions.stream({ model, messages, tools, tool_choice: 'required', parallel_tool_calls: false, temperature: 0, max_tokens: 200 });
const { choices: [choice] } = await stream.finalChatCompletion();
assert.equal(choice.finish_reason, 'tool_calls');
weather(JSON.parse(choice.message.tool_calls[0].function.arguments));

// Embeddings, which this client asks for as base64, and an error.
const { data } = await client.embeddings.create({ model, input: 'The cat sleeps.' });
assert(data[0].embedding.length > 0 && data[0].embedding.every(Number.isFinite));
await assert.rejects(client.chat.completions.create({ model: 'other', messages }), { status: 404, code: 'model_not_found' });

// Leaving the loop ends the answer on the server.
const long = await client.chat.completions.create({ model, messages, max_tokens: 2000, stream: true });
for await (const chunk of long) {
    if (chunk.choices[0]?.delta.content) {
        break;
    }
}
console.log('The client in JavaScript has what it asked for:', calls);
