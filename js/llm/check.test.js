import assert from 'node:assert/strict';
import test from 'node:test';
import * as check from './check.js';
import { partsOf } from './source.js';

const invalid = (message) => ({ code: 'INVALID_ARGUMENT', message });

test('options are checked by name, and nothing is coerced', () => {
    const checks = { seed: check.seed, stop: check.stops };
    assert.deepEqual(check.options({ seed: 1, stop: 'a' }, checks), { seed: 1, stop: ['a'] });
    assert.deepEqual(check.options({ seed: undefined }, checks), {});
    assert.throws(() => check.options({ sead: 1 }, checks), invalid('there is no option `sead`; did you mean `seed`?'));
    assert.throws(() => check.options({ seed: '1' }, checks), invalid("`seed` is '1', but must be a whole number from 0 to 2^53 - 1"));
});

test('tokens are whole numbers below 2^32', () => {
    assert.deepEqual([...check.tokens([1, 2])], [1, 2]);
    assert.throws(() => check.tokens([-1]), { code: 'INVALID_ARGUMENT' });
    assert.throws(() => check.tokens('12'), invalid("`tokens` is '12', but must be an array of token ids"));
});

test('messages are texts or text parts', () => {
    const parts = [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }];
    const list = [{ role: 'user', content: parts }, { role: 'assistant', content: null }];
    const texts = [{ role: 'user', content: 'ab' }, { role: 'assistant', content: '' }];
    assert.deepEqual(check.messages(list), texts);
    assert.throws(() => check.messages([]), { code: 'EMPTY' });
    assert.throws(() => check.messages([{ role: 'user', content: null }]), invalid(/`messages\[0\]\.content` is null/));
    assert.throws(() => check.messages([{ role: 'user', content: [{ type: 'image' }] }]), invalid(/content\[0\]\.type` is 'image'/));
});

test('messages may have calls, results and reasoning', () => {
    const tool_calls = [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }];
    const list = [
        { role: 'assistant', tool_calls, reasoning_content: 'x', refusal: null },
        { role: 'tool', content: 'y', tool_call_id: 'a', name: 'f' },
    ];
    assert.deepEqual(check.messages(list), [
        { role: 'assistant', content: '', reasoning_content: 'x', tool_calls },
        { role: 'tool', content: 'y', tool_call_id: 'a' },
    ]);
    const tool = { role: 'tool', content: '', tool_call_id: 1 };
    assert.throws(() => check.messages([tool]), invalid(/`messages\[0\]\.tool_call_id` is 1/));
});

test('a response format is a schema', () => {
    assert.equal(check.responseFormat({ type: 'text' }, 'f'), undefined);
    assert.equal(check.responseFormat({ type: 'json_object' }, 'f'), '{"type":"object"}');
    const format = { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'number' } } };
    assert.equal(check.responseFormat(format, 'f'), '{"type":"number"}');
    assert.throws(() => check.responseFormat({ type: 'xml' }, 'f'), { code: 'INVALID_ARGUMENT' });
});

test('the first part of a split model names all others', () => {
    const name = (i) => `https://x/m-0000${i}-of-00003.gguf?v=1`;
    assert.deepEqual(partsOf(name(1)), [name(1), name(2), name(3)]);
    assert.deepEqual(partsOf(name(2)), [name(2)]);
    assert.deepEqual(partsOf('m-00001-of-00000.gguf'), ['m-00001-of-00000.gguf']);
    assert.throws(() => partsOf([]), { code: 'INVALID_ARGUMENT' });
});
