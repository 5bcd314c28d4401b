// The demo's page for conversations: an answer, also of a model whose worker fails in the middle of it.

import assert from 'node:assert/strict';
import { cpSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, describe, test } from 'node:test';
import { launch } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';
import { writeTinyModel } from '../support/tiny-model.mjs';

const page = fileURLToPath(new URL('../../www/', import.meta.url));

describe('the page for conversations', () => {
  let browser;
  let server;
  let site;
  before(async () => {
    const folder = fresh('talk');
    writeTinyModel(folder);
    site = join(folder, 'site');
    cpSync(page, site, { recursive: true });
    cpSync(join(folder, 'node_modules/relampago'), join(site, 'relampago'), { recursive: true });
    cpSync(join(folder, 'tiny.gguf'), join(site, 'tiny.gguf'));
    server = await serve(site, { headers: ({ 'content-type': type }) => ({ 'content-type': type ?? 'text/css' }) });
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });

  /** Asks by keyboard; the worker fails once the answer has begun if `fails`. Returns the answer and the number of workers. */
  async function ask(fails) {
    const tab = await browser.newPage();
    await tab.addInitScript(() => {
      globalThis.workers = [];
      globalThis.Worker = class extends Worker {
        constructor(...args) {
          super(...args);
          globalThis.workers.push(this);
        }
      };
    });
    await tab.goto(`${server.url}/talk.html?model=tiny.gguf`);
    const isReady = () => !document.getElementById('send').disabled;
    await tab.waitForFunction(isReady);
    if (fails) {
      await tab.evaluate(failDuringAnswer);
    }
    await tab.fill('#question', 'hello');
    await tab.press('#question', 'Enter');
    await tab.waitForFunction(() => document.getElementById('messages').childElementCount === 2);
    await tab.waitForFunction(isReady);
    const text = await tab.evaluate(() => document.getElementById('messages').lastChild.textContent);
    const workers = await tab.evaluate(() => globalThis.workers.length);
    await tab.close();
    return { text, workers };
  }

  test('answers, and goes on with an answer whose worker failed', async () => {
    const whole = await ask(false);
    assert.equal(whole.workers, 1);
    const lost = await ask(true);
    assert.equal(lost.workers, 2);
    assert.equal(lost.text, whole.text);
  });

  test('waits for the entry that is still being built', async () => {
    const entry = join(site, 'relampago/llm');
    renameSync(entry, `${entry}.later`);
    const tab = await browser.newPage();
    await tab.goto(`${server.url}/talk.html?model=tiny.gguf`);
    await tab.waitForFunction(() => document.getElementById('status').textContent.includes('still being built'));
    renameSync(`${entry}.later`, entry);
    await tab.waitForFunction(() => !document.getElementById('send').disabled);
    await tab.close();
  });
});

/** In the page: once some text is there, the worker sends what cannot be read. */
function failDuringAnswer() {
  const messages = document.getElementById('messages');
  const observer = new MutationObserver(() => {
    if (messages.lastChild.textContent.length > 15) {
      observer.disconnect();
      globalThis.workers.at(-1).onmessageerror(new Event('messageerror'));
    }
  });
  observer.observe(messages, { childList: true, subtree: true, characterData: true });
}
