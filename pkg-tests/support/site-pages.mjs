// The first page and the playground, used by keyboard as visitors do.

import assert from 'node:assert/strict';
import { layout, verifyLayout } from './layout.mjs';
import { outcomeOf, verify } from './run-buttons.mjs';
import { exampleSamples } from './samples.mjs';

/** A sample of which line 4 is wrong. */
const WRONG = "import init, { GpuDevice } from 'relampago';\nawait init();\nconst device = await GpuDevice.create();\nawait device.vecAdd(new Float32Array(4), new Float32Array(3));\n";
const DAMAGED = '#code=AAAA';
/** Narrow phones have this width. */
const PHONE = { width: 360, height: 740 };
/** The most elements with a focus before the button that runs the code. */
const PRESSES = 20;

/** The first page filters its picture, and runs the sample as it was edited. Returns the number of pixels. */
export async function verifyLanding(page, url) {
  await page.goto(url);
  const { wrong, pixels } = await page.evaluate(compareEdges);
  assert.equal(wrong, 0, `${wrong} of ${pixels} pixels of the first page are wrong`);
  await page.locator('#gallery input').nth(0).focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => document.querySelector('#status').textContent.startsWith('Blur'));
  await verifyErrorLine(page);
  await runTyped(page, "console.log(6 * 7);\nexport const list = ['a', 1];\n");
  verify('the edited sample', ['42', '["a", 1]'], await outcomeOf(page));
  assert.equal(await page.evaluate(() => globalThis.relampagoLanding.models.then(() => document.querySelector('#notice').textContent)), '');
  return pixels;
}

/** The playground checks types, runs its examples, and opens the links that it makes. Returns the number of examples. */
export async function verifyPlayground(page, url) {
  await page.goto(`${url}/playground.html`);
  await page.evaluate(() => globalThis.relampagoPlayground.ready);
  const examples = exampleSamples();
  for (const [index, { name, code, prints }] of examples.entries()) {
    await page.evaluate(choose, index);
    await page.waitForFunction((code) => document.querySelector('#code textarea').value === code, code);
    assert.deepEqual(await errorLines(page), [], name);
    await pressIn(page, '#code textarea', 'ControlOrMeta+Enter');
    verify(name, prints, await outcomeOf(page));
    const plans = await page.evaluate(() => document.querySelectorAll('#output .kernel').length);
    assert.equal(plans > 0, /export .*(program|batch)\b/.test(code), `${name} shows ${plans} kernels`);
  }
  await verifyErrorLine(page);
  await verifyTypes(page);
  await verifyStop(page);
  await verifyLink(page, url);
  return examples.length;
}

/** The pages fit a phone in Chromium, have contrast in both schemes, and let the Tab key through to the Run button. */
export async function verifyOnPhone(browser, url) {
  for (const colorScheme of ['light', 'dark']) {
    const context = await browser.newContext({ viewport: PHONE, colorScheme, reducedMotion: 'reduce' });
    const page = await context.newPage();
    for (const [path, ready] of [['/', () => globalThis.relampagoLanding.models], ['/playground.html', () => globalThis.relampagoPlayground.ready]]) {
      await page.goto(url + path);
      await page.evaluate(ready);
      await runByTab(page);
      verify(`${path} on a phone`, ['0,0,1,1'], await outcomeOf(page));
      verifyLayout(await page.evaluate(layout), PHONE.width);
    }
    await page.goto(`${url}/docs/guide/recipes.html`);
    await pressIn(page, '.run-button', 'Enter');
    verify('a guide on a phone', [], await outcomeOf(page));
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), PHONE.width);
    await context.close();
  }
}

async function runByTab(page) {
  for (let presses = 0; await page.evaluate(() => document.activeElement.id !== 'run'); presses++) {
    assert.ok(presses < PRESSES, 'the button has no focus');
    await page.keyboard.press('Tab');
  }
  await page.keyboard.press('Enter');
}

const errorLines = async (page) => (await page.evaluate(() => globalThis.relampagoPlayground.checked())).map(({ line }) => line);

/** The field marks the line that an error comes from, and the output names it. */
async function verifyErrorLine(page) {
  await runTyped(page, WRONG);
  const { state, lines } = await outcomeOf(page);
  assert.equal(state, 'failed');
  assert.match(lines.at(-1), /^line 4: RelampagoError: vecAdd: `b` has 3 values/);
  assert.deepEqual(await page.locator('.code-wrong').allTextContents(), ['4']);
  await runTyped(page, 'const a = 1;\nconst b = ;\n');
  assert.match((await outcomeOf(page)).lines.at(-1), /^line 2: SyntaxError/);
}

/** An entry of the list of errors leads to its line. */
async function verifyTypes(page) {
  await page.locator('#code textarea').fill(WRONG);
  assert.deepEqual(await errorLines(page), []);
  await page.locator('#code textarea').fill(`${WRONG}device.relu(3);\nconst x = ;\n`);
  assert.deepEqual(await errorLines(page), [5, 6]);
  await pressIn(page, '#types button', 'Enter');
  const before = await page.evaluate(() => document.activeElement.value.slice(0, document.activeElement.selectionStart));
  assert.equal(before, WRONG);
}

/** An endless loop is stopped by the button that started it. */
async function verifyStop(page) {
  await page.locator('#code textarea').fill("console.log('begun');\nfor (;;) {}\n");
  await pressIn(page, '#run', 'Enter');
  await page.waitForFunction(() => document.querySelector('#output .run-line')?.textContent === 'begun');
  await pressIn(page, '#run', 'Enter');
  const { lines } = await outcomeOf(page);
  assert.deepEqual(lines, ['begun', 'Stopped.']);
}

/** A link opens the code that it was made of; a damaged one says so. */
async function verifyLink(page, url) {
  const code = '// ¡Relámpago! ⚡\nexport const answer = 42;\n';
  await page.locator('#code textarea').fill(code);
  await pressIn(page, '#share', 'Enter');
  await page.waitForFunction(() => location.hash.startsWith('#code='));
  const link = await page.evaluate(() => location.href);
  await page.goto(url);
  await page.goto(link);
  await page.evaluate(() => globalThis.relampagoPlayground.ready);
  assert.equal(await page.evaluate(() => document.querySelector('#code textarea').value), code);
  await page.evaluate((hash) => { location.hash = hash; }, DAMAGED);
  await page.waitForFunction(() => /damaged/.test(document.querySelector('#notice').textContent));
}

/** Replaces the code, and runs it from the field. */
async function runTyped(page, code) {
  await page.locator('#code textarea').fill(code);
  await page.evaluate(() => { delete document.querySelector('#output').dataset.state; });
  await pressIn(page, '#code textarea', 'ControlOrMeta+Enter');
}

async function pressIn(page, selector, keys) {
  await page.locator(selector).nth(0).focus();
  await page.keyboard.press(keys);
}

/** In the page: chooses an example. */
function choose(index) {
  const list = document.querySelector('#examples');
  delete document.querySelector('#output').dataset.state;
  list.selectedIndex = index;
  list.dispatchEvent(new Event('change', { bubbles: true }));
}

/** In the page: counts the pixels of the filtered picture that differ from eight times a pixel less its neighbours. */
async function compareEdges() {
  await globalThis.relampagoLanding.filtered;
  const [before, after] = ['before', 'after'].map((id) => {
    const canvas = document.getElementById(id);
    return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  });
  const { width, height, data } = before;
  const at = (x, y, channel) => (x < 0 || y < 0 || x >= width || y >= height ? 0 : data[4 * (y * width + x) + channel]);
  let wrong = 0;
  for (let i = 0; i < data.length; i++) {
    const [x, y, channel] = [(i >> 2) % width, Math.floor((i >> 2) / width), i & 3];
    let sum = 9 * at(x, y, channel);
    for (const down of [-1, 0, 1]) {
      for (const right of [-1, 0, 1]) {
        sum -= at(x + right, y + down, channel);
      }
    }
    wrong += channel < 3 && after.data[i] !== Math.min(255, Math.max(0, sum));
  }
  return { wrong, pixels: width * height };
}
