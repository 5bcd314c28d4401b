// Models, adapters, sessions and matrices that end, and arguments that change, while calls wait for their turn.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { launch } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { writeTinyModel } from '../support/tiny-model.mjs';
import { unbundled } from '../support/unbundled.mjs';

const WITHIN = 'within its buffer, which was detached or became too short';

/** What each function of the application's script has to return; `where` is `node`, `thread` or `worker`. */
const VERIFY = {
  matrices({ errors, disposed, ...result }) {
    assert.deepEqual(result, { filled: [248, 496, 744], changed: [248], late: [248], after: [248], last: [248], again: [248, 248] });
    assert.equal(disposed, 'DISPOSED: this QuantizedMatrix was disposed of: make a new one');
    assert.deepEqual(errors, {
      detached: `INVALID_ARGUMENT: \`x\` is an object (Float32Array), but must be ${WITHIN}`,
      blocks: `INVALID_ARGUMENT: \`blocks\` is an object (Float32Array), but must be ${WITHIN}`,
      buffer: `INVALID_ARGUMENT: \`blocks\` is an object (ArrayBuffer), but must be ${WITHIN}`,
      long: 'LENGTH_MISMATCH: `x` has 1048576 values, but must have 32',
      rows: 'LENGTH_MISMATCH: `x` has 32 values, but must have 137438953440',
      short: 'LENGTH_MISMATCH: `blocks` has 33 values, but must have 34',
    });
  },

  together(texts, native) {
    assert.deepEqual(texts, [native.text, native.text]);
  },

  disposals({ detached, ...result }, native) {
    const ended = Array(6).fill('DISPOSED');
    assert.deepEqual(result, { disposed: ended, opening: ['DISPOSED'], reading: true, text: native.text, loaded: true });
    assert.equal(detached, `INVALID_ARGUMENT: \`saved\` is an object (Uint8Array), but must be ${WITHIN}`);
  },

  reloads(result, native, where) {
    assert.deepEqual(result, {
      refused: ['INVALID_ARGUMENT', 'ABORTED', 'INVALID_ARGUMENT', where === 'node' ? 'FILE' : 'NETWORK'],
      tokens: result.tokens,
      text: native.text,
      together: [undefined, 'ABORTED', undefined],
      loads: 1,
      again: native.text,
      aborted: ['ABORTED', undefined],
      last: native.text,
      isFlat: true,
    });
    assert.ok(result.tokens.length > 0);
  },

  adapters(result, native) {
    const { adapted, text } = native;
    assert.deepEqual(result, {
      early: [adapted, adapted],
      disposed: 'DISPOSED: this Lora was disposed of: make a new one',
      pending: adapted,
      sessions: [adapted, text],
      fork: adapted,
    });
  },

  mistakes({ schema, ...result }) {
    const length = 'is 1099511627776, but must be a length that an array can have';
    assert.deepEqual(result, {
      option: 'INVALID_ARGUMENT: `lora[0]`: there is no option `scal`; did you mean `scale`?',
      scale: "INVALID_ARGUMENT: `lora[0].scale` is '2', but must be a finite number",
      before: 'ABORTED: aborted by the caller',
      during: 'ABORTED: aborted by the caller',
      made: [
        'UNSUPPORTED: models are made by LanguageModel.load',
        'UNSUPPORTED: adapters are made by model.loadLora',
        'UNSUPPORTED: matrices are made by QuantizedMatrix.fromBlocks',
        'UNSUPPORTED: sessions are made by model.session',
      ],
      tokens: `INVALID_ARGUMENT: \`tokens.length\` ${length}`,
      detokenized: `INVALID_ARGUMENT: \`tokens.length\` ${length}`,
      function: 'INVALID_ARGUMENT: `response_format.json_schema.schema` is an object (Function), but must be an object that has JSON',
      toJSON: 'INVALID_ARGUMENT: `response_format.json_schema.schema` is an object (Object), but must be an object that has JSON',
      bytes: `INVALID_ARGUMENT: \`source\` is an object (Uint8Array), but must be ${WITHIN}`,
      buffer: `INVALID_ARGUMENT: \`source\` is an object (ArrayBuffer), but must be ${WITHIN}`,
    });
    assert.match(schema, /^INVALID_ARGUMENT: `json_schema` is \{"not":\{\},"description":"x{100,200}…, but must be valid: /);
    assert.ok(schema.length < 1000, schema);
  },
};

/** The arguments of these functions after the package and the model's source. */
const needsAdapter = ['adapters', 'mistakes'];

describe('lifetimes in relampago/llm', () => {
  let folder;
  let native;
  before(() => {
    folder = fresh('llm-lifetimes');
    native = writeTinyModel(folder);
  });

  describe('in node', () => {
    let llm;
    let app;
    before(async () => {
      llm = await import(pathToFileURL(join(folder, 'node_modules/relampago/llm/node.js')));
      app = await import(pathToFileURL(join(folder, 'llm-lifetimes.js')));
    });

    for (const [name, verify] of Object.entries(VERIFY)) {
      test(name, async () => {
        const adapter = needsAdapter.includes(name) ? [new Uint8Array(readFileSync(join(folder, 'tiny-lora.gguf')))] : [];
        const source = name === 'matrices' ? [] : [join(folder, 'tiny.gguf')];
        verify(await app[name](llm, ...source, ...adapter, {}), native, 'node');
      });
    }

    test('URLs of files that have no path', async () => {
      for (const url of ['file://host/x', 'file:///a%2Fb']) {
        await assert.rejects(llm.LanguageModel.load(url), { code: 'FILE', message: new RegExp(`^the model could not be read from ${url}: `) });
      }
    });
  });

  describe('on a page', () => {
    let server;
    let browser;
    before(async () => {
      const files = ['llm-sources.js', 'llm-lifetimes.js', 'tiny.gguf', 'tiny-lora.gguf'];
      server = await serve(unbundled(folder, 'llm-sources', files));
      browser = await launch();
    });
    after(async () => {
      server?.close();
      await browser?.close();
    });

    for (const [where, worker] of [['thread', false], ['worker', true]]) {
      for (const [name, verify] of Object.entries(VERIFY)) {
        test(`${name} in a ${where}`, { timeout: 60_000 }, async () => {
          const page = await browser.newPage();
          try {
            await page.goto(`${server.url}/llm-sources.html`);
            const visit = [name, needsAdapter.includes(name), { worker, device: 'simd' }];
            verify(await page.evaluate(visitPage, visit), native, where);
          } finally {
            await page.close();
          }
        });
      }
    }
  });
});

/** Calls a function of the application's script, in the page. */
async function visitPage([name, needsAdapter, options]) {
  const llm = await import('/relampago/llm/index.js');
  const app = await import('/llm-lifetimes.js');
  const adapter = needsAdapter ? [new Uint8Array(await (await fetch('tiny-lora.gguf')).arrayBuffer())] : [];
  const source = name === 'matrices' ? [] : ['tiny.gguf'];
  return app[name](llm, ...source, ...adapter, options);
}
