// The browsers that the tests know: headless Chromium with WebGPU in software, Firefox, WebKit.

import { chromium } from 'playwright-core';
import { open } from './webdriver.mjs';

export const FLAGS = [
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

/** Has Firefox offer adapters in software, too. */
const WEBGPU_IN_FIREFOX = {
  'dom.webgpu.enabled': true,
  'dom.webgpu.workers.enabled': true,
  'gfx.webgpu.ignore-blocklist': true,
};

const LAUNCH = {
  chromium() {
    const executablePath = process.env.CHROME ?? '/usr/bin/chromium';
    // Playwright's own headless switch chooses the old shell, which has no WebGPU.
    return chromium.launch({ executablePath, args: FLAGS, ignoreDefaultArgs: ['--headless'] });
  },

  firefox() {
    const options = { binary: process.env.FIREFOX ?? '/usr/bin/firefox-esr', args: ['-headless'], prefs: WEBGPU_IN_FIREFOX };
    return open({ driver: [process.env.GECKODRIVER ?? 'geckodriver'], capabilities: { 'moz:firefoxOptions': options } });
  },

  // It has no headless mode, hence a display of its own.
  webkit() {
    const binary = process.env.MINIBROWSER ?? '/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser';
    return open({
      driver: ['xvfb-run', '-a', 'WebKitWebDriver'],
      // Root may not start its sandbox, which is for pages of others.
      env: { WEBKIT_DISABLE_SANDBOX: '1' },
      capabilities: { 'webkitgtk:browserOptions': { binary, args: ['--automation'] } },
    });
  },
};

/** What documents call them. */
export const TITLES = { chromium: 'Chromium', firefox: 'Firefox', webkit: 'WebKit' };

/** WebKit is WebKitGTK, which is on Linux alone. */
export const ENGINES = Object.keys(LAUNCH).filter((engine) => engine !== 'webkit' || process.platform === 'linux');

/** A browser as Playwright has it; of other engines than Chromium, what `webdriver.mjs` has of that. */
export function launch(engine = 'chromium') {
  return LAUNCH[engine]();
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
