// The tests of devices in workers and with threads, on a page without a bundler.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TITLES } from './browser.mjs';
import { fresh } from './install.mjs';
import { ran } from './ran.mjs';
import { verifyThreads } from './threads.mjs';
import { verify } from './verify.mjs';
import { open } from './workers.mjs';

function plain(folder) {
  cpSync(join(folder, 'node_modules/relampago'), join(folder, 'relampago'), { recursive: true });
  const source = readFileSync(join(folder, 'workers.js'), 'utf8');
  writeFileSync(join(folder, 'workers.js'), source.replace("'relampago'", "'./relampago/index.js'"));
  return folder;
}

export async function workersIn(engine) {
  const pages = await open(plain(fresh(`workers-${engine}`)), engine);
  after(() => pages.close());
  const result = async (...values) => (await pages.run(...values)).result;
  const choice = await result('choice');
  /** WebKitGTK's isolated pages have no memory to share all the same. */
  const shares = choice.shares;
  const backends = choice.hasAdapter ? ['gpu', 'simd'] : ['simd'];

  test('the choice of a back-end is explained', () => {
    verifyChoice(engine, choice);
  });

  describe('worker', () => {
    for (const backend of backends) {
      test(`the whole application on ${backend}`, async () => {
        const { inWorker, agree } = await result('same', backend);
        assert.equal(inWorker.interop, false, 'no object of the worker can reach the page');
        verify({ ...inWorker, interop: backend === 'gpu' }, backend);
        assert.ok(agree, 'the values are those of a device on the page, bit by bit');
        ran(TITLES[engine], 'devices in workers', { version: pages.version, ...inWorker });
      });

      test(`what a device on ${backend} says of itself`, async () => {
        const { here, there, inWorker, isDevice, gpuDevice } = await result('told', backend);
        assert.equal(there, here);
        assert.deepEqual(inWorker, [false, true]);
        assert.ok(isDevice);
        assert.equal(gpuDevice, 'undefined');
      });

      test(`buffers on ${backend} outlive batch and device`, async () => {
        assert.deepEqual(await result('buffers', backend), { length: 4, gpuBuffer: 'undefined', values: [1, 0, 3, 0] });
      });

      test(`mistakes have the same codes on ${backend}`, async () => {
        const [here, there] = await result('mistakes', backend);
        assert.deepEqual(there, here);
      });

      test(`10,000 runs of a program on ${backend} leave memory as it was`, async () => {
        const { first, last } = await result('steady', backend);
        assert.ok(first.moduleBytes > 0 && (first.gpuBuffers > 0) === (backend === 'gpu'));
        assert.deepEqual(last, first);
      });

      test(`buffers of calls on ${backend} serve later ones`, async () => {
        assert.deepEqual(await result('reused', backend), { wrong: [], kept: true });
      });

      test(`a recording on ${backend} does not change afterwards`, async () => {
        assert.deepEqual(await result('recorded', backend), [2, 4, 6, 8]);
      });
    }

    test('the page goes on while a product is computed', async () => {
      const { ticks, value, length } = await result('responsive');
      assert.ok(ticks >= 1);
      assert.equal(value, 1024);
      assert.equal(length, 1024 * 1024);
    });

    test('a failed worker is a lost device', async () => {
      assert.deepEqual(await result('crash'), {
        before: 'no error',
        during: 'DEVICE_LOST',
        after: Array(4).fill('DEVICE_LOST'),
        named: [['relu'], ['vecAdd']],
        rebuilt: [0, 1],
      });
    });

    test('workers end with what they are for', async () => {
      const all = shares ? 3 : 1;
      assert.deepEqual(await result('end'), [all, all, 0, shares ? 3 : 0, 0, 0]);
    });

    test('wrong options', async () => {
      const codes = await result('options');
      assert.deepEqual(codes, [...Array(9).fill('INVALID_ARGUMENT'), 'ABORTED', 'ABORTED']);
    });

    test('one module is loaded for the page, and one for all threads', async () => {
      const { requests } = await pages.run('end');
      const modules = requests.filter((url) => url.endsWith('.wasm')).map((url) => /_shared_/.test(url));
      assert.deepEqual(modules.toSorted(), shares ? [false, true] : [false]);
    });

    test('nobody who does not ask for workers loads a script for them', async () => {
      const { requests } = await pages.run('none');
      assert.deepEqual(requests.filter((url) => url.includes('/workers/')), []);
    });

    // Without memory to share a device on the page has one thread, and no worker.
    const refused = { worker: 'UNSUPPORTED', threads: shares ? 'UNSUPPORTED' : 'no error', plain: 'no error' };

    test('a policy against workers', async () => {
      const headers = (own) => {
        const policy = own['content-security-policy'];
        return { ...own, 'content-security-policy': policy?.replace("worker-src 'self'", "worker-src 'none'") };
      };
      assert.deepEqual(await pages.runChanged('refused', { headers }), refused);
    });

    test('a script that is not there', async () => {
      assert.deepEqual(await pages.runChanged('refused', { missing: ['relampago_worker.js', 'relampago_threads.js'] }), refused);
    });

    test('what threads need is not there', { skip: !shares && 'no memory to share' }, async () => {
      for (const missing of ['relampago_threads.js', 'shared_relaxed.wasm']) {
        const { worker, threads } = await pages.runChanged('refused', { missing: [missing, missing.replace('relaxed', 'simd128')] });
        assert.equal(worker, 'no error', 'a device in a worker has one thread then');
        assert.equal(threads, missing.endsWith('.js') ? 'UNSUPPORTED' : 'NOT_LOADED');
      }
    });
  });

  describe('aborts', () => {
    for (const backend of backends) {
      test(`work on ${backend} that is aborted leaves other results alone`, async (t) => {
        const { started, aborted, checked, wrong } = await result('aborts', backend);
        t.diagnostic(`${started} pieces of work, ${aborted} aborted, ${checked} results checked between them`);
        assert.deepEqual(wrong, []);
        assert.ok(started >= 5000 && aborted >= started / 4);
      });
    }
  });

  describe('threads', () => {
    test('give the values of one thread, with shared memory', async () => {
      verifyThreads(await result('threads'), shares);
      shares && ran(TITLES[engine], 'threads', { version: pages.version });
    });

    test('give the values of one thread, without shared memory', async () => {
      verifyThreads(await pages.runChanged('threads', { headers: notIsolated }), false);
    });

    test('can be aborted and disposed of', async () => {
      const codes = ['ABORTED', 'ABORTED', 'INVALID_ARGUMENT', 'no error', 'LENGTH_MISMATCH', 'DISPOSED'];
      assert.deepEqual(await result('threadsAbort'), codes);
    });

    test('a device that lost a worker can be rebuilt', { skip: !shares && 'no memory to share' }, async () => {
      const lost = ['DEVICE_LOST', 'DEVICE_LOST', 'no error'];
      const ended = (count) => Array.from({ length: count }, (_, i) => i < 2);
      assert.deepEqual(await result('threadCrash'), [...lost, ended(4), ...lost, ended(4)]);
    });
  });
}

/** Chromium has an adapter, in software; where there is none, SIMD is chosen and the reason says so. */
function verifyChoice(engine, { hasAdapter, backend, reason, insisted }) {
  assert.ok(hasAdapter || engine !== 'chromium', 'Chromium has SwiftShader');
  assert.equal(insisted, hasAdapter ? 'no error' : 'NO_GPU');
  if (!hasAdapter) {
    assert.equal(backend, 'simd');
    assert.match(reason, /WebGPU/);
  }
}

// Without these a page has no memory that it could share with a worker.
function notIsolated(headers) {
  const { 'cross-origin-opener-policy': opener, 'cross-origin-embedder-policy': embedder, ...others } = headers;
  assert.ok(opener && embedder);
  return others;
}
