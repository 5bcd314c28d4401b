// The demo's page for conversations: an answer, also of a model whose worker fails in the middle of it.

import assert from 'node:assert/strict';
import { cpSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, describe, test } from 'node:test';
import { launch } from '../support/browser.mjs';
import { countFrames } from '../support/frames.mjs';
import { fresh } from '../support/install.mjs';
import { focus, layout, verifyLayout } from '../support/layout.mjs';
import { serve } from '../support/serve.mjs';
import { withoutTemplate, writeTinyModel } from '../support/tiny-model.mjs';

const MODEL = process.env.RELAMPAGO_MODEL ?? join(homedir(), '.cache/relampago/models/smollm2-135m.gguf');

const PHONE = { width: 390, height: 844 };

/** Style sheets have no type of their own there. */
const typed = ({ 'content-type': type }) => ({ 'content-type': type ?? 'text/css' });

const page = fileURLToPath(new URL('../../www/', import.meta.url));

describe('the page for conversations', () => {
  let browser;
  let server;
  let site;
  let native;
  before(async () => {
    const folder = fresh('talk');
    native = writeTinyModel(folder);
    site = join(folder, 'site');
    cpSync(page, site, { recursive: true });
    cpSync(join(folder, 'node_modules/relampago'), join(site, 'relampago'), { recursive: true });
    cpSync(join(folder, 'tiny.gguf'), join(site, 'tiny.gguf'));
    writeFileSync(join(site, 'base.gguf'), withoutTemplate(readFileSync(join(folder, 'tiny.gguf'))));
    symlinkSync(MODEL, join(site, 'model.gguf'));
    server = await serve(site, { headers: typed });
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

  test('continues texts with a model that has no chat template, and says so', async () => {
    const tab = await browser.newPage();
    const isReady = () => !document.getElementById('send').disabled;
    const described = () => {
      const { placeholder, labels, ariaDescribedByElements: [note] } = document.getElementById('question');
      return { placeholder, label: labels[0].textContent, note: note.textContent, isShown: note.checkVisibility() };
    };
    await tab.goto(`${server.url}/talk.html?model=base.gguf`);
    await tab.waitForFunction(isReady);
    const { note, ...rest } = await tab.evaluate(described);
    assert.deepEqual(rest, { placeholder: 'Text to continue', label: 'Text to continue', isShown: true });
    assert.match(note, /no chat template/);
    for (const length of [2, 4]) {
      await tab.fill('#question', 'hello');
      await tab.press('#question', 'Enter');
      await tab.waitForFunction((length) => document.getElementById('messages').childElementCount === length, length);
      await tab.waitForFunction(isReady);
    }
    const texts = await tab.evaluate(() => [...document.querySelectorAll('#messages .assistant')].map(({ textContent }) => textContent));
    assert.ok(texts[0].startsWith(native.text), texts[0]);
    assert.equal(texts[1], texts[0]);
    assert.equal(await tab.evaluate(() => document.getElementById('notice').hidden), true);
    await tab.setInputFiles('#file', join(site, 'tiny.gguf'));
    await tab.waitForFunction(() => document.getElementById('question').placeholder === 'Your message');
    assert.deepEqual(await tab.evaluate(described), { placeholder: 'Your message', label: 'Your message', note: '', isShown: false });
    await tab.close();
  });

  for (const colorScheme of ['light', 'dark']) {
    test(`is used by keyboard alone on a phone, in ${colorScheme}`, async () => {
      const context = await browser.newContext({ viewport: PHONE, colorScheme });
      const tab = await context.newPage();
      await tab.goto(`${server.url}/talk.html?model=tiny.gguf`);
      await tab.waitForFunction(() => !document.getElementById('send').disabled);
      // The link, the file, the question, the button: each shows where the focus is.
      const focused = [];
      for (let presses = 0; focused.at(-1)?.name !== 'question'; presses++) {
        assert.ok(presses < 6, `the question has no focus after ${JSON.stringify(focused)}`);
        await tab.keyboard.press('Tab');
        focused.push(await tab.evaluate(focus));
      }
      assert.deepEqual(focused.map(({ name }) => name), ['A', 'file', 'question']);
      await tab.keyboard.type('hello');
      await tab.keyboard.press('Tab');
      focused.push(await tab.evaluate(focus));
      assert.equal(focused.at(-1).name, 'send');
      assert.deepEqual(focused.filter(({ isShown }) => !isShown), []);
      await tab.keyboard.press('Enter');
      await tab.waitForFunction(() => document.getElementById('messages').childElementCount === 2);
      await tab.waitForFunction(() => !document.getElementById('send').disabled);
      assert.notEqual(await tab.evaluate(() => document.getElementById('spoken').textContent), '');
      verifyLayout(await tab.evaluate(layout), PHONE.width);
      await context.close();
    });
  }

  test('stops an answer by keyboard, and shows 60 frames a second meanwhile', async () => {
    const context = await browser.newContext({ viewport: PHONE });
    const tab = await context.newPage();
    await tab.goto(`${server.url}/talk.html?model=model.gguf`);
    await tab.waitForFunction(() => !document.getElementById('send').disabled, undefined, { timeout: 120_000 });
    await tab.evaluate(countFrames);
    await tab.focus('#question');
    await tab.keyboard.type('Write a long story about the sea.');
    await tab.keyboard.press('Enter');
    const spoken = (length) => document.getElementById('messages').lastChild?.textContent.length > length;
    await tab.waitForFunction(spoken, 10, { timeout: 120_000 });
    await tab.evaluate(() => globalThis.gaps.splice(0));
    await tab.waitForFunction(spoken, 600, { timeout: 120_000 });
    const gaps = (await tab.evaluate(() => globalThis.gaps)).sort((a, b) => a - b);
    const [median, longest] = [gaps[gaps.length >> 1], gaps.at(-1)];
    // From the question over the button, which is disabled, to the one that stops.
    await tab.keyboard.press('Tab');
    assert.equal((await tab.evaluate(focus)).name, 'stop');
    await tab.keyboard.press('Enter');
    await tab.waitForFunction(() => !document.getElementById('send').disabled);
    const answer = await tab.evaluate(() => document.getElementById('messages').lastChild.textContent);
    console.log(`${gaps.length} frames during an answer: median ${median.toFixed(1)} ms, longest ${longest.toFixed(1)} ms`);
    assert.ok(answer.length > 600 && gaps.length > 30, `${answer.length} characters, ${gaps.length} frames`);
    assert.ok(median <= 17, `${median} ms`);
    await context.close();
  });

  test('is where the first page leads with a model that the browser has stored', async () => {
    // Models are stored if the server names their version.
    const storing = await serve(site, { headers: (own) => ({ ...typed(own), etag: '"1"' }) });
    const tab = await browser.newPage();
    const isReady = () => !document.getElementById('send').disabled;
    await tab.goto(`${storing.url}/talk.html?model=tiny.gguf`);
    await tab.waitForFunction(isReady);
    await tab.goto(`${storing.url}/index.html`);
    await tab.evaluate(() => globalThis.relampagoLanding.models);
    const link = tab.locator('#models a');
    assert.deepEqual(await link.allTextContents(), ['tiny.gguf']);
    await link.focus();
    await tab.keyboard.press('Enter');
    await tab.waitForURL(/talk\.html/);
    await tab.waitForFunction(isReady);
    assert.match(await tab.evaluate(() => document.getElementById('status').textContent), /from the copy in this browser/);
    await tab.close();
    storing.close();
  });

  test('waits for the entry that is still being built', async () => {
    const entry = join(site, 'relampago/llm');
    renameSync(entry, `${entry}.later`);
    const tab = await browser.newPage();
    await tab.goto(`${server.url}/talk.html?model=tiny.gguf`);
    await tab.waitForFunction(() => document.getElementById('status').textContent.includes('still being built'));
    // The file that is chosen meanwhile takes the place of the first one, whose loading ends without a word.
    await tab.setInputFiles('#file', join(site, 'base.gguf'));
    renameSync(`${entry}.later`, entry);
    await tab.waitForFunction(() => !document.getElementById('send').disabled);
    assert.equal(await tab.evaluate(() => document.getElementById('question').placeholder), 'Text to continue');
    assert.equal(await tab.evaluate(() => document.getElementById('notice').hidden), true);
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
