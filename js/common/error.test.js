import assert from 'node:assert/strict';
import test from 'node:test';
import { RelampagoError } from './error.js';

test('an error has a code, a message and its cause', () => {
    const cause = new Error('why');
    const error = new RelampagoError('NETWORK', 'what', cause);
    assert.deepEqual([error.name, error.code, error.message, error.cause], ['RelampagoError', 'NETWORK', 'what', cause]);
    assert.ok(!('cause' in new RelampagoError('NETWORK', 'what')));
});

test('instanceof recognises errors of other copies of the class', async () => {
    const copy = await import('./error.js?copy');
    assert.notEqual(copy.RelampagoError, RelampagoError);
    assert.ok(new copy.RelampagoError('GPU', '') instanceof RelampagoError);
    for (const other of [new Error(), undefined, null, 1]) {
        assert.ok(!(other instanceof RelampagoError));
    }
});
