// Headless Chromium with WebGPU in software.

import { chromium } from 'playwright-core';

const FLAGS = [
  '--headless=new',
  '--no-sandbox',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
];

export function launch() {
  const executablePath = process.env.CHROME ?? '/usr/bin/chromium';
  // Playwright's own headless switch chooses the old shell, which has no WebGPU.
  return chromium.launch({ executablePath, args: FLAGS, ignoreDefaultArgs: ['--headless'] });
}

// Opens `url` and returns what its `outcome` promise resolves to, with every request it made.
// Complaints on the console, those about the content security policy included, are failures.
export async function outcome(browser, url) {
  const page = await browser.newPage();
  const requests = [];
  const complaints = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  try {
    await page.goto(url);
    const result = await page.evaluate(() => globalThis.outcome);
    if (complaints.length > 0 || result === undefined) {
      throw new Error(`the page complained: ${complaints.join('\n') || 'it has no outcome'}`);
    }
    return { result, requests };
  } catch (error) {
    error.message += `\n${complaints.join('\n')}`;
    throw error;
  } finally {
    await page.close();
  }
}
