// Files of more than 4 GB: what they say is read from their beginning.

import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { launch } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { large, largeModel, writeLargeModel } from '../support/large-model.mjs';
import { serve } from '../support/serve.mjs';
import { unbundled } from '../support/unbundled.mjs';

describe('models of more than 4 GB', () => {
  const { head, size } = largeModel();
  let folder;
  let path;
  let server;
  let LanguageModel;
  /** The bytes that the server sent. */
  let sent = 0;
  before(async () => {
    folder = fresh('llm-large');
    path = join(folder, 'large.gguf');
    assert.equal(await writeLargeModel(path), size);
    server = await serve(unbundled(folder, 'llm-sources', ['llm-sources.js']), { answer });
    ({ LanguageModel } = await import(pathToFileURL(join(folder, 'node_modules/relampago/llm/node.js'))));
  });
  after(async () => {
    server?.close();
    await rm(path, { force: true });
  });

  /** Sends ranges of a file of this size. */
  function answer(request, response, { pathname }) {
    if (!pathname.endsWith('/large.gguf')) {
      return false;
    }
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range).map(Number);
    const body = Buffer.alloc(to - from + 1);
    head.copy(body, 0, Math.min(from, head.length));
    sent += body.length;
    response.writeHead(206, { etag: '"large"', 'content-range': `bytes ${from}-${to}/${size}`, 'content-length': body.length }).end(body);
    return true;
  }

  function verify(inspected) {
    const { parameters, fileBytes, weightTypes, maxContextLength, architecture, simdBytes, sessionBytes } = inspected;
    assert.deepEqual({ parameters, fileBytes, maxContextLength, architecture }, {
      parameters: large.parameters,
      fileBytes: size,
      maxContextLength: large.maxContextLength,
      architecture: 'llama',
    });
    assert.deepEqual(weightTypes, [{ type: 'F32', bytes: large.weightBytes }]);
    assert.equal(simdBytes, size + sessionBytes);
  }

  test('from a path', async () => verify(await LanguageModel.inspect(path)));

  test('from a server', async () => {
    verify(await LanguageModel.inspect(`${server.url}/large.gguf`));
    assert.ok(sent < 20e6, `${sent} bytes`);
  });

  test('from a server and from a File, on a page', async () => {
    const browser = await launch();
    try {
      const page = await browser.newPage();
      await page.goto(`${server.url}/llm-sources.html`);
      await page.waitForFunction(() => Boolean(globalThis.LanguageModel));
      verify(await page.evaluate(() => globalThis.LanguageModel.inspect(new URL('large.gguf', location))));
      await page.setContent('<input type="file">');
      await page.setInputFiles('input', path);
      verify(await page.evaluate(() => globalThis.LanguageModel.inspect(document.querySelector('input').files[0])));
    } finally {
      await browser.close();
    }
  });

  test('cannot be loaded', async () => {
    await assert.rejects(LanguageModel.load(path), { code: 'OUT_OF_MEMORY' });
  });

  test('which end before their weights do are damaged', async () => {
    const short = new Blob([head, new Uint8Array(100)]);
    await assert.rejects(LanguageModel.inspect(short), { code: 'INVALID_MODEL' });
  });
});
