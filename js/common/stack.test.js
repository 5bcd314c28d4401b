import assert from 'node:assert/strict';
import test from 'node:test';
import { RelampagoError } from './error.js';
import { entered, traceAll, traced } from './stack.js';

const fail = () => {
    throw new RelampagoError('GPU', 'no');
};

/** Returns the name in the first line of an error's stack. */
const first = ({ stack }) => /\n\s+at (?:async )?(\S+)/.exec(stack)[1];

test('the stack of a blocking method begins with its caller', () => {
    function method() {
        return entered(method, fail);
    }
    function caller() {
        method();
    }
    assert.throws(caller, (error) => first(error) === 'caller' && error.message === 'no');
    assert.equal(entered(method, () => 3), 3);
});

test('the stack of a promise begins where the method was called', async () => {
    const method = traced(async () => {
        await null;
        fail();
    });
    function caller() {
        return method();
    }
    await assert.rejects(caller, (error) => first(error) === 'caller' && error.stack.startsWith('RelampagoError: no\n'));
});

test('a traced method keeps its object, its arguments, its result and errors of others', async () => {
    const owner = {
        base: 1,
        async add(value) {
            return this.base + value;
        },
        async fail() {
            throw 'a string';
        },
    };
    traceAll(owner, ['add', 'fail']);
    assert.equal(await owner.add(2), 3);
    await assert.rejects(owner.fail(), (error) => error === 'a string');
});
