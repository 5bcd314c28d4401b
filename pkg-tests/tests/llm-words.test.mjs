// The words of tokenizers, which JavaScript's engine finds, against the crate's: in Node and in each browser.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { ENGINES, launch, outcome } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { writeWords } from '../support/tiny-model.mjs';
import { unbundled } from '../support/unbundled.mjs';

describe('words of texts', () => {
  let folder;
  let server;
  before(async () => {
    folder = fresh('llm-words');
    const files = writeWords(folder);
    server = await serve(unbundled(folder, 'llm', ['llm.js', ...files]));
  });
  after(() => server?.close());

  const verify = ({ compared, different }) => {
    assert.deepEqual(different, []);
    assert.equal(compared, 9000);
  };

  test('in node', () => {
    verify(JSON.parse(execFileSync('node', ['llm-node.js', 'words'], { cwd: folder, encoding: 'utf8' })));
  });

  for (const engine of ENGINES) {
    test(`in ${engine}`, async () => {
      const browser = await launch(engine);
      try {
        const { result } = await outcome(browser, `${server.url}/llm.html?words`);
        verify(result);
      } finally {
        await browser.close();
      }
    });
  }
});
