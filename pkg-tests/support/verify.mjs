// Whether what the app returned is right.

import assert from 'node:assert/strict';
import { ops } from '../app/ops.js';
import { oracle } from './oracle.mjs';

const ERRORS = {
  mismatch: 'LENGTH_MISMATCH',
  shape: 'LENGTH_MISMATCH',
  empty: 'EMPTY',
  clip: 'INVALID_ARGUMENT',
  record: 'LENGTH_MISMATCH',
  unbound: 'UNBOUND',
  missing: 'LENGTH_MISMATCH',
  abortedBefore: 'ABORTED',
  abortedDuring: 'ABORTED',
  abortedCreation: 'ABORTED',
  disposed: 'DISPOSED',
  ...Object.fromEntries([
    'detached', 'detachedUpload', 'detachedInBatch', 'detachedArgument', 'noArguments', 'noArgumentsToRun',
    'noOutputs', 'noFeedback', 'noRuns', 'notArguments', 'notBuffer', 'fraction',
  ].map((mistake) => [mistake, 'INVALID_ARGUMENT'])),
  whileExecuting: 'NOT_EXECUTED',
  afterwards: 'ALREADY_EXECUTED',
  plain: '(Array)',
  intoShort: 'LENGTH_MISMATCH',
  intoOther: 'LENGTH_MISMATCH',
  intoScalar: 'LENGTH_MISMATCH',
  falseSignal: 'INVALID_ARGUMENT',
};

// relu, scale and vecAdd are one kernel, which reads two arrays of four values and writes one.
const PLAN = [['relu,scale,vec_add', 48]];
const PROGRAM = {
  batch: PLAN,
  plan: PLAN,
  backends: [true],
  read: [2, 1, 3, 1],
  again: [2, 1.5, 2.5, 1.5],
  loop: [2.75, 2.75, 2.75, 2.75],
  stream: [[2, 1.5, 2.5, 1.5], [2.375, 2.375, 2.375, 2.375]],
};

export function verify(results, backend) {
  assert.equal(results.backend, backend === 'gpu' ? 'webgpu' : 'simd');
  verifyOps(results.ops, results.batch);
  assert.deepEqual(results.resident, { length: 4, values: [[0.5, 0, 1.5, 0], [2, 0, 6, 0]] });
  assert.equal(results.interop, backend === 'gpu', 'the GPUDevice behind a WebGPU device');
  assert.equal(results.disposable, 'function');
  const time = [[true], 'LENGTH_MISMATCH', 'ABORTED'];
  assert.deepEqual(results.program, { ...PROGRAM, time });
  assert.deepEqual(results.changed, [[1, 0, 3], [-1, 2, -3], [1, -2, 3]], 'values as they were at the call');
  assert.deepEqual(results.resizable, [[1, 0, 3], [-1, 2, -3], [1, -2, 3]]);
  assert.deepEqual(results.cancelled, ['NaN,NaN,0,3', 'NaN,NaN,10000000000,2', 'NaN,NaN,-10000000000,1']);
  assert.deepEqual(results.into, [], 'results in arrays of the caller');
  assert.deepEqual(results.memory, [], 'arrays whose memory changes');
  assert.deepEqual(results.errors, ERRORS);
}

/** Results of all operations, on a device and in a batch. */
export function verifyOps(onDevice, inBatch = []) {
  ops.forEach(([method, inputs, parameters], i) => {
    const right = oracle[method](inputs, parameters);
    near(onDevice[i], right, `${method} on the device`);
    if (inBatch.length > 0) {
      near([inBatch[i]].flat(), [right].flat(), `${method} in a batch`);
    }
  });
}

function near(got, right, what) {
  if (typeof right === 'number') {
    assert.equal(typeof got, 'number', `${what} is a number`);
    [got, right] = [[got], [right]];
  }
  assert.equal(got.length, right.length, `length of ${what}`);
  got.forEach((value, i) => {
    const tolerance = 1e-5 * (1 + Math.abs(right[i]));
    assert.ok(Math.abs(value - right[i]) <= tolerance, `${what}, value ${i}: ${value}, not ${right[i]}`);
  });
}
