import assert from 'node:assert/strict';
import test from 'node:test';
import { GpuCommandBatch } from './batch.js';
import { GpuDevice } from './device.js';
import { DeviceBuffer } from './device_buffer.js';
import { GpuMatmulCache } from './matmul_cache.js';
import { MADE, ownedBy } from '../common/owner.js';
import { Program } from './program.js';

/** What computes for a device: it records the calls of its methods, and returns objects of its kind. */
const executor = (calls, link) => new Proxy({ link }, {
    get(target, name) {
        if (name in target || name === 'then') {
            return target[name];
        }
        return (...values) => {
            calls.push([name, ...values]);
            return ['batch', 'keep', 'matmulCache', 'upload'].includes(name) ? executor(calls, link) : undefined;
        };
    },
});

const deviceOf = (link) => {
    const calls = [];
    return { calls, device: new GpuDevice(executor(calls, link), MADE) };
};

test('a device in a worker has the classes and methods of one in this thread', async () => {
    for (const link of [undefined, {}]) {
        const { calls, device } = deviceOf(link);
        const batch = device.batch();
        const buffer = await device.upload('values');
        assert.ok(batch instanceof GpuCommandBatch && buffer instanceof DeviceBuffer);
        assert.ok(device.matmulCache() instanceof GpuMatmulCache);
        batch.input(buffer);
        batch.relu('id');
        await device.relu('array');
        const names = calls.map(([name]) => name);
        assert.deepEqual(names, ['batch', 'upload', 'matmulCache', 'input', 'record', 'runNow', 'runOp']);
        assert.equal(calls[3][1], ownedBy(buffer));
        assert.deepEqual(calls[4], ['record', 0, ['id']]);
    }
});

test('an object of another worker is foreign', async () => {
    const [{ device }, { device: other }] = [deviceOf({}), deviceOf({})];
    const foreign = { code: 'FOREIGN', message: 'input: `buffer` belongs to another device: copy its values to this one' };
    const buffer = await other.upload('values');
    assert.throws(() => device.batch().input(buffer), foreign);
    assert.throws(() => deviceOf(undefined).device.batch().input(buffer), foreign);
    assert.equal(device.owns(buffer), false);
    assert.equal(other.owns(buffer), true);
});

test('arguments of another class are named with their requirement', () => {
    const batch = deviceOf().device.batch();
    const message = 'input: `buffer` is 5, but must be a DeviceBuffer';
    assert.throws(() => batch.input(5), { code: 'INVALID_ARGUMENT', message });
});

test('methods refuse calls without their object, and what was disposed of', async () => {
    const { device } = deviceOf();
    const { batch, relu } = device;
    const alone = (name) => ({ message: `${name}: the method was called without its device; call it as device.${name}(…)` });
    assert.throws(() => batch(), alone('batch'));
    await assert.rejects(relu('array'), alone('relu'));
    const recording = device.batch();
    device.dispose();
    const gone = { code: 'DISPOSED', message: 'batch: this GpuDevice was disposed of: make a new one' };
    assert.throws(() => device.batch(), gone);
    assert.doesNotThrow(() => recording.relu('id'));
});

test('classes have their names, whatever the script calls them', () => {
    const names = [GpuDevice, GpuCommandBatch, DeviceBuffer, GpuMatmulCache, Program].map(({ name }) => name);
    assert.deepEqual(names, ['GpuDevice', 'GpuCommandBatch', 'DeviceBuffer', 'GpuMatmulCache', 'Program']);
});
