// Checks what devices with threads gave.

import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';

/** `expected` says whether threads can share memory there. */
export function verifyThreads({ hardwareConcurrency = availableParallelism(), outcomes }, expected) {
  const cores = Math.min(8, hardwareConcurrency > 4 ? hardwareConcurrency >> 1 : hardwareConcurrency);
  for (const { options, different, info, threadsReason } of outcomes) {
    const asked = options.threads === 'auto' ? cores : options.threads;
    const threads = expected ? asked : 1;
    assert.deepEqual(info, { worker: false, ...options, threads }, 'the threads that the device reports');
    assert.deepEqual(different, different.map(() => 0), `values that differ with ${JSON.stringify(options)}`);
    assert.equal(different.length, 23);
    assert.equal(threadsReason === undefined, threads > 1);
    expected || assert.match(threadsReason, /isolated|core|memory/);
  }
}
