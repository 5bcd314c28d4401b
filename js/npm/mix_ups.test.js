import assert from 'node:assert/strict';
import test from 'node:test';
import { RelampagoError } from '../common/error.js';
import { named, namedLater, requireAbortable } from './methods.js';
import { explained, requireOwner } from './mix_ups.js';

class Tensor {}
class DeviceBuffer {}

/** Returns the message that an error of the module gets in a call with these arguments. */
const messageOf = (message, values) =>
    explained(new RelampagoError('INVALID_ARGUMENT', message), values, messageOf, 'relu').message;

test('an argument that is easily mixed up gets a hint', () => {
    const array = (what) => `\`x\` is ${what}, but must be a Float32Array`;
    const cases = [
        [array('an object (Tensor)'), new Tensor(), 'use the methods of the tensor, or await its data()'],
        [array('an object (DeviceBuffer)'), new DeviceBuffer(), 'a DeviceBuffer is for batch.input(buffer) and programs; or await its read()'],
        ['`id` is an object (Float32Array), but must be a BufferId', new Float32Array(1), 'record it with batch.upload(values) first'],
    ];
    for (const [message, value, hint] of cases) {
        assert.equal(messageOf(message, [value]), `relu: ${message}; ${hint}`);
    }
});

test('other errors get the name of the method alone, once', () => {
    assert.equal(messageOf('`x` is 3, but must be a Float32Array', [3]), 'relu: `x` is 3, but must be a Float32Array');
    assert.equal(messageOf('tensor: no', []), 'relu: no');
    assert.equal(messageOf('`relu` of nothing', []), '`relu` of nothing');
    const other = new Error('of someone else');
    assert.equal(explained(other, [], messageOf, 'relu'), other);
});

test('an explained error keeps its code and cause, and begins at the caller', () => {
    const cause = new Error();
    const given = new RelampagoError('GPU', 'lost', cause);
    function entry() {
        return explained(given, [], entry, 'relu');
    }
    function caller() {
        return entry();
    }
    const error = caller();
    assert.deepEqual([error.code, error.cause, given.message], ['GPU', cause, 'lost']);
    assert.match(error.stack, /^RelampagoError: relu: lost\n\s+at caller /);
});

test('a method without its object says how to call it', async () => {
    class Device {}
    const message = 'run: the method was called without its device; call it as device.run(…)';
    assert.throws(() => requireOwner(undefined, Device, 'device', 'run'), { code: 'INVALID_ARGUMENT', message });
    const run = named(Device, 'device', 'run', () => 1);
    assert.throws(() => run(), { message });
    assert.equal(run.call(new Device()), 1);
    await assert.rejects(namedLater(Device, 'device', 'run', () => 1)(), { message });
});

test('a method whose only option is a signal refuses others', async () => {
    class Device {}
    const upload = namedLater(Device, 'device', 'upload', (values) => values, 1);
    assert.equal(await upload.call(new Device(), 2, { signal: undefined }), 2);
    await assert.rejects(upload.call(new Device(), 2, { signl: 1 }), { message: 'upload: there is no option `signl`; did you mean `signal`?' });
    requireAbortable(null);
});
