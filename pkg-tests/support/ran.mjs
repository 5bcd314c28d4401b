// What passed where, for the table in docs/engines.md, which `engines.mjs` writes.

import { appendFileSync } from 'node:fs';

/**
 * Records that `what` passed in `host`, of this version, where a device had these instructions and this
 * back-end.
 */
export function ran(host, what, { version, instructionSet, backend } = {}) {
  const file = process.env.RELAMPAGO_RAN;
  if (file) {
    appendFileSync(file, `${JSON.stringify({ host, what, version, instructionSet, backend })}\n`);
  }
}
