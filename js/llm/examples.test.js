import assert from 'node:assert/strict';
import test from 'node:test';
import { examplesOf } from './examples.js';

const invalid = (message) => ({ code: 'INVALID_ARGUMENT', message });
const messages = [{ role: 'user', content: 'a' }, { role: 'assistant', content: 'b' }];

test('examples are texts and conversations, as lines of a file have them', () => {
    const list = ['x', { text: 'y' }, messages, { messages }];
    assert.deepEqual(examplesOf(list).map((line) => JSON.parse(line)), [{ text: 'x' }, { text: 'y' }, { messages }, { messages }]);
    assert.deepEqual(examplesOf([]), []);
    assert.equal(examplesOf(['\ud800'])[0], '{"text":"\ufffd"}');
});

test('other examples are refused by their index', () => {
    assert.throws(() => examplesOf('x'), invalid("`examples` is 'x', but must be an array of texts and of conversations"));
    assert.throws(() => examplesOf(['x', 5]), invalid('`examples[1]` is 5, but must be a text or an array of messages'));
    assert.throws(() => examplesOf([[{ role: 'user' }]]), invalid(/^`examples\[0\]`: `messages\[0\]\.content` is undefined/));
    assert.throws(() => examplesOf([[]]), { code: 'EMPTY', message: /^`examples\[0\]`: / });
});
