// Logits of models on a page, on SIMD, beside the exact ones, which an independent pass in f64 gave. Gemma 3 is tried
// where RELAMPAGO_GEMMA names its file.

import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { unbundled } from '../support/unbundled.mjs';

/** The largest root mean square of a position's differences, and the margin above which the largest logit must be the same. */
const TOLERANCE = 0.05;

const models = [
  {
    name: 'SmolLM2',
    file: process.env.RELAMPAGO_MODEL ?? join(homedir(), '.cache/relampago/models/smollm2-135m.gguf'),
    logits: 'smollm2-logits.json',
    positions: 81,
  },
  {
    name: 'Gemma 3',
    file: process.env.RELAMPAGO_GEMMA,
    logits: 'gemma3-logits.json',
    positions: 100,
  },
];

const rms = (list) => Math.sqrt(list.reduce((sum, x) => sum + x * x, 0) / list.length);

describe('logits on a page are the exact ones', () => {
  let browser;
  before(async () => {
    browser = await launch();
  });
  after(() => browser?.close());

  for (const { name, file, logits, positions } of models) {
    test(name, { skip: !file && 'RELAMPAGO_GEMMA names no file' }, async () => {
      const site = unbundled(fresh(`llm-exact-${logits}`), 'llm', ['llm.js']);
      const exact = fileURLToPath(new URL(`../../tests/data/${logits}`, import.meta.url));
      symlinkSync(file, join(site, 'model.gguf'));
      copyFileSync(exact, join(site, 'logits.json'));
      const server = await serve(site);
      try {
        const { result } = await outcome(browser, `${server.url}/llm.html?exact&device=simd`);
        verify(result, JSON.parse(readFileSync(exact, 'utf8')), positions);
      } finally {
        server.close();
      }
    });
  }
});

function verify({ info, results }, texts, positions) {
  assert.equal(info.backend, 'simd');
  for (const [way, how] of ['at once', 'one by one'].entries()) {
    const compared = texts.flatMap(({ top }, text) => top.map((exact, i) => compare(results[text][way][i], exact)));
    const worst = Math.max(...compared.map(({ differences }) => rms(differences)));
    const all = rms(compared.flatMap(({ differences }) => differences));
    console.log(`${info.instructionSet}, ${how}: rms ${all.toExponential(2)} of ${compared.length} positions, at most ${worst.toExponential(2)}`);
    assert.equal(compared.length, positions);
    assert.ok(worst < TOLERANCE, `${how}: rms ${worst}`);
    assert.deepEqual(compared.filter(({ isOther }) => isOther), [], how);
  }
}

/** The differences of a position's logits, and whether a clear choice is another one. */
function compare({ logits, largest }, exact) {
  const [first, second] = exact.logits;
  const isOther = first - second > TOLERANCE && largest !== exact.ids[0];
  return { differences: exact.logits.map((logit, i) => logits[i] - logit), isOther };
}
