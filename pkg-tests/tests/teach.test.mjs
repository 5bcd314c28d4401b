// The site's page on which a model learns.

import assert from 'node:assert/strict';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
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
const headers = ({ 'content-type': type, ...own }) => ({ ...own, 'content-type': type ?? 'text/css', 'content-security-policy': `${own['content-security-policy']}; style-src 'self'; img-src 'self' data:` });

const pages = fileURLToPath(new URL('../../www/', import.meta.url));

describe('the page for teaching', () => {
  let browser;
  let server;
  let site;
  before(async () => {
    const folder = fresh('teach');
    writeTinyModel(folder);
    site = join(folder, 'site');
    cpSync(pages, site, { recursive: true });
    cpSync(join(folder, 'node_modules/relampago'), join(site, 'relampago'), { recursive: true });
    cpSync(join(folder, 'tiny.gguf'), join(site, 'tiny.gguf'));
    writeFileSync(join(site, 'base.gguf'), withoutTemplate(readFileSync(join(folder, 'tiny.gguf'))));
    symlinkSync(MODEL, join(site, 'model.gguf'));
    server = await serve(site, { headers });
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });

  const isReady = () => !document.getElementById('start').disabled;
  const textOf = (tab, id) => tab.evaluate((id) => document.getElementById(id).textContent, id);
  async function open(model, options = {}) {
    const context = await browser.newContext(options);
    const tab = await context.newPage();
    await tab.goto(`${server.url}/teach.html?model=${model}`);
    await tab.waitForFunction(isReady, undefined, { timeout: 120_000 });
    return tab;
  }

  /** Short examples fit into the tiny model's context. */
  async function fill(tab, pairs) {
    await tab.evaluate((count) => {
      const rows = [...document.querySelectorAll('#examples tr')];
      rows.slice(count).forEach((row) => row.querySelector('button').click());
    }, pairs.length);
    for (const [row, texts] of pairs.entries()) {
      for (const [column, text] of texts.entries()) {
        await tab.locator('#examples textarea').nth(2 * row + column).fill(text);
      }
    }
  }

  async function saved(tab, id) {
    const download = tab.waitForEvent('download');
    await tab.click(`#${id}`);
    const file = await download;
    return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
  }

  for (const colorScheme of ['light', 'dark']) {
    test(`teaches by keyboard alone on a phone, in ${colorScheme}`, async () => {
      const tab = await open('tiny.gguf', { viewport: PHONE, colorScheme });
      await fill(tab, [['hi', '12 o'], ['o', 'hello']]);
      verifyLayout(await tab.evaluate(layout), PHONE.width);
      await tab.locator('#epochs').fill('30');
      await tab.locator('#learning-rate').fill('0.01');
      // From the fields of the table on, each element shows the focus.
      await tab.locator('#examples textarea').nth(0).focus();
      const focused = [];
      while (focused.at(-1)?.name !== 'start') {
        assert.ok(focused.length < 20, `the button has no focus after ${JSON.stringify(focused)}`);
        await tab.keyboard.press('Tab');
        focused.push(await tab.evaluate(focus));
      }
      assert.deepEqual(focused.filter(({ isShown }) => !isShown), []);
      await tab.keyboard.press('Enter');
      await tab.waitForFunction(() => /^Learned after 30 steps/.test(document.getElementById('progress-of-steps').textContent));
      const [, first, last] = (await textOf(tab, 'progress-of-steps')).match(/went from (\S+) to (\S+)\.$/);
      assert.ok(Number(last) < Number(first), `${first} to ${last}`);
      const points = await tab.evaluate(() => document.getElementById('loss-line').getAttribute('points').split(' '));
      assert.equal(points.length, 30);
      assert.match(await tab.evaluate(() => document.getElementById('losses').getAttribute('aria-label')), /from \S+ to \S+ in 30 steps/);
      await tab.waitForFunction(() => /^Before: .*After: /s.test(document.getElementById('spoken').textContent));
      assert.notEqual(await textOf(tab, 'before'), await textOf(tab, 'after'));
      verifyLayout(await tab.evaluate(layout), PHONE.width);
      assert.equal(await tab.evaluate(() => document.getElementById('notice').hidden), true);
      const files = [await saved(tab, 'save-gguf'), await saved(tab, 'save-peft'), await saved(tab, 'save-config')];
      assert.deepEqual(files.map(({ name }) => name), ['adapter.gguf', 'adapter_model.safetensors', 'adapter_config.json']);
      assert.equal(files[0].bytes.toString('latin1', 0, 4), 'GGUF');
      assert.equal(JSON.parse(files[2].bytes).r, 8);
      await tab.context().close();
    });
  }

  test('stops after a step, and keeps what was learned; rows are added and removed', async () => {
    const tab = await open('tiny.gguf');
    await fill(tab, [['hi', '12 o']]);
    await tab.click('#add');
    assert.equal(await tab.evaluate(() => document.activeElement.ariaLabel), 'Question');
    assert.equal(await tab.locator('#examples tr').count(), 2);
    await tab.locator('#epochs').fill('1000');
    await tab.click('#start');
    await tab.waitForFunction(() => /^Step \d+ of 1000/.test(document.getElementById('progress-of-steps').textContent));
    await tab.click('#stop');
    await tab.waitForFunction(() => /^Stopped after \d+ steps/.test(document.getElementById('progress-of-steps').textContent));
    assert.equal(await tab.evaluate(() => document.getElementById('save-gguf').disabled), false);
    await tab.context().close();
  });

  test('teaches a model without a chat template by texts; without examples it says so', async () => {
    const tab = await open('base.gguf');
    assert.match(await textOf(tab, 'place'), /no chat template/);
    await fill(tab, [['hi', '12 o']]);
    await tab.locator('#epochs').fill('2');
    await tab.click('#start');
    await tab.waitForFunction(() => /^Learned after 2 steps/.test(document.getElementById('progress-of-steps').textContent));
    await fill(tab, []);
    await tab.click('#start');
    await tab.waitForFunction(() => !document.getElementById('notice').hidden);
    assert.match(await textOf(tab, 'notice'), /example/);
    await tab.context().close();
  });

  test('another model ends the tuning of the first one', async () => {
    const tab = await open('tiny.gguf');
    await fill(tab, [['hi', '12 o']]);
    await tab.locator('#epochs').fill('1000');
    await tab.click('#start');
    await tab.waitForFunction(() => /^Step /.test(document.getElementById('progress-of-steps').textContent));
    await tab.setInputFiles('#file', join(site, 'base.gguf'));
    await tab.waitForFunction(() => /no chat template/.test(document.getElementById('place').textContent));
    assert.equal(await tab.evaluate(() => document.getElementById('notice').hidden), true);
    assert.equal(await tab.evaluate(() => document.getElementById('start').disabled), false);
    await tab.context().close();
  });

  test('shows 60 frames a second while SmolLM2 learns', async () => {
    const tab = await open('model.gguf');
    await tab.evaluate(countFrames);
    await tab.click('#start');
    await tab.waitForFunction(() => /^Step [3-9] /.test(document.getElementById('progress-of-steps').textContent), undefined, { timeout: 120_000 });
    const gaps = await tab.evaluate(() => globalThis.gaps);
    const sorted = gaps.toSorted((a, b) => a - b);
    const median = sorted[gaps.length >> 1];
    console.log(`${gaps.length} frames, ${median.toFixed(1)} ms in the median, ${sorted.at(-1).toFixed()} ms at most`);
    assert.ok(median < 20, `${median} ms between frames`);
    await tab.context().close();
  });
});
