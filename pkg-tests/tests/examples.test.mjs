// The applications in examples/web: types by `tsc`, a build by Vite, and a visit in Chromium.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { launch } from '../support/browser.mjs';
import { freshHost } from '../support/install.mjs';
import { serve } from '../support/serve.mjs';

const examples = fileURLToPath(new URL('../../examples/web/', import.meta.url));
const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));

/** Waits until an element's text matches, and returns it. */
async function textOf(page, selector, pattern) {
  const matches = ([place, source]) => new RegExp(source).test(document.querySelector(place)?.textContent ?? '');
  await page.waitForFunction(matches, [selector, pattern.source], { timeout: 60_000 });
  return page.evaluate((place) => document.querySelector(place).textContent, selector);
}

/** The mean of a canvas's channels, and how much neighbours of a row differ. */
const canvasOf = (page) =>
  page.evaluate(() => {
    const canvas = document.querySelector('canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const mean = data.reduce((sum, byte) => sum + byte, 0) / data.length;
    const differences = data.reduce((sum, byte, i) => sum + Math.abs(byte - (data[i + 4] ?? byte)), 0) / data.length;
    return { mean, differences };
  });

const setSlider = (page, id, value) =>
  page.evaluate(([place, text]) => {
    const slider = document.getElementById(place);
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(slider, text);
    slider.dispatchEvent(new Event('input', { bubbles: true }));
  }, [id, String(value)]);

/** What a visitor does in each application, and sees. */
const VISITS = {
  async sharpen(page) {
    await textOf(page, '#state', /radius 2, amount 1$/);
    const before = await canvasOf(page);
    assert.ok(before.differences > 1, 'there is a picture');
    await setSlider(page, 'amount', 4);
    await textOf(page, '#state', /radius 2, amount 4$/);
    const { differences } = await canvasOf(page);
    assert.ok(differences > 1.2 * before.differences, `${differences} of ${before.differences}: sharper`);
  },

  async 'k-means'(page) {
    await textOf(page, '#state', /1 steps/);
    for (let steps = 2; steps <= 30; steps++) {
      await page.click('#step');
      await textOf(page, '#state', new RegExp(`: ${steps} steps`));
    }
    await textOf(page, '#state', /moved 0\.0000$/);
    assert.ok((await canvasOf(page)).differences > 1, 'points are drawn');
  },

  async perceptron(page) {
    await textOf(page, '#state', /^done on/);
    const rows = await page.evaluate(() =>
      [...document.querySelectorAll('tr')].slice(1).map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(rows.map(([format]) => format), ['f32', 'f16', 'q8_0', 'q4_0']);
    const errors = rows.map(([, , error]) => Number(error));
    assert.equal(errors[0], 0);
    assert.ok(errors[1] < errors[2] && errors[2] < errors[3] && errors[3] < 2, `errors ${errors}`);
    const same = rows.map(([, , , part]) => parseInt(part, 10));
    assert.ok(same[0] === 100 && same[2] >= 90 && same[3] >= 60, `the same class in ${same} percent`);
  },
};

for (const [name, visit] of Object.entries(VISITS)) {
  describe(`examples/web/${name}`, () => {
    let folder;
    let server;
    let browser;
    before(() => {
      folder = freshHost(`example-${name}`);
      for (const part of ['src', 'index.html', 'tsconfig.json']) {
        cpSync(join(examples, name, part), join(folder, part), { recursive: true });
      }
    });
    after(async () => {
      await browser?.close();
      server?.close();
    });

    test('types', () => {
      try {
        execFileSync('node', [tsc], { cwd: folder, encoding: 'utf8' });
      } catch (error) {
        throw new Error(error.stdout);
      }
    });

    test('a visit', async () => {
      await build({ root: folder, logLevel: 'warn', worker: { format: 'es' }, build: { assetsInlineLimit: 0, target: 'es2022' } });
      server = await serve(join(folder, 'dist'));
      browser = await launch();
      const page = await browser.newPage();
      const complaints = [];
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      page.on('pageerror', (error) => complaints.push(String(error)));
      try {
        await page.goto(`${server.url}/index.html`);
        await visit(page);
      } catch (error) {
        throw new Error(`${error.message}\n${complaints.join('\n')}`);
      }
      assert.deepEqual(complaints, []);
    });
  });
}
