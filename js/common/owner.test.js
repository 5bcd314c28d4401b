import assert from 'node:assert/strict';
import test from 'node:test';
import { DISPOSE } from './dispose.js';
import { MADE, Owner, ownedBy, ownedIf } from './owner.js';

class Thing extends Owner {
    static name = 'Thing';
}

const owned = (calls) => ({ dispose: () => calls.push('dispose'), free: () => calls.push('free') });

test('an object that was disposed of owns nothing, and is freed once', () => {
    for (const method of ['dispose', 'free', DISPOSE]) {
        const calls = [];
        const part = owned(calls);
        const thing = new Thing(part, MADE);
        assert.equal(ownedBy(thing), part);
        thing[method]();
        thing[method]();
        assert.deepEqual(calls, ['dispose', 'free'], String(method));
        assert.throws(() => ownedBy(thing), { code: 'DISPOSED', message: 'this Thing was disposed of: make a new one' });
        assert.equal(ownedIf(thing), undefined);
    }
});

test('memory that a call uses stays, and the object is disposed of', () => {
    const thing = new Thing({ free: () => assert.fail('a call is under way') }, MADE);
    thing.dispose();
    assert.throws(() => ownedBy(thing), { code: 'DISPOSED' });
});

test('callers of the package cannot make objects', () => {
    const refused = { code: 'INVALID_ARGUMENT', message: 'Thing has no constructor; methods such as GpuDevice.create() make its objects' };
    assert.throws(() => new Thing(), refused);
    assert.throws(() => new Thing({}, Symbol('made')), refused);
});

test('other values own nothing', () => {
    for (const value of [undefined, null, 5, 'a', {}, Object.create(Thing.prototype)]) {
        assert.equal(ownedIf(value), undefined);
    }
});
