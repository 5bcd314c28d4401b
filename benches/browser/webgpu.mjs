// The race on WebGPU in this machine's browser, as the page runs it by itself elsewhere.

import { launch } from '../../pkg-tests/support/browser.mjs';

export async function raceOnGpu(url, { rounds, only }) {
  const browser = await launch();
  try {
    const context = await browser.newContext({ bypassCSP: true });
    const page = await context.newPage();
    page.on('console', (message) => console.error(message.text(), message.type() === 'error' ? message.location().url : ''));
    await page.goto(`${url}/webgpu.html?${new URLSearchParams({ rounds, only: only.source })}`);
    const { failure, rows, adapter } = await page.evaluate(() => globalThis.outcome);
    if (failure) {
      throw new Error(failure);
    }
    return { chromium: browser.version(), adapter, rows, startup: [] };
  } finally {
    await browser.close();
  }
}
