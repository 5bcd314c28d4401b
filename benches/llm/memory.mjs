// The memory of a page with a model: that of its renderer process, once the model is loaded and once it has answered.

import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { launch } from '../../pkg-tests/support/browser.mjs';

/** The time in which a browser returns memory that it does not use. */
const REST = 3000;

/** Opens a page that holds a model in a browser of its own; returns bytes of the empty page, and with the model. */
export async function memory(url) {
  const browser = await launch();
  try {
    const page = await browser.newPage();
    await page.goto(url);
    await page.waitForFunction(() => Boolean(globalThis.held));
    const empty = await residentBytes(browser);
    await page.evaluate(() => globalThis.held.load());
    const loaded = await residentBytes(browser);
    await page.evaluate(() => globalThis.held.answer());
    return { empty, loaded, answered: await residentBytes(browser) };
  } finally {
    await browser.close();
  }
}

/**
 * The resident memory of the renderer that has most, which is the page's (others are empty), and its share of it: where
 * processes share memory, such as the browser's code, each has a part (PSS).
 */
async function residentBytes(browser) {
  await wait(REST);
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  const pages = processInfo.filter(({ type }) => type === 'renderer');
  const sizes = pages.map(({ id }) => {
    const text = readFileSync(`/proc/${id}/smaps_rollup`, 'utf8');
    const [rss, pss] = ['Rss', 'Pss'].map((kind) => 1024 * Number(new RegExp(`^${kind}:\\s+(\\d+)`, 'm').exec(text)[1]));
    return { rss, pss };
  });
  return sizes.reduce((most, each) => (each.rss > most.rss ? each : most));
}
