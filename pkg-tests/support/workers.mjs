// Pages that ask for devices in workers, brought into a browser in one way or another.

import { launch, outcome } from './browser.mjs';
import { fresh } from './install.mjs';
import { serve } from './serve.mjs';

// `build` turns a fresh project folder into a folder to serve.
export async function open(name, build) {
  const server = await serve(await build(fresh(name)));
  const browser = await launch();
  const url = (what, backend) => `${server.url}/workers.html?case=${what}&backend=${backend}`;
  return {
    // What a case returns, with every request of its page. A complaint on the console is a failure.
    run: (what, backend = 'simd') => outcome(browser, url(what, backend)),

    // What a case returns where the server's headers, or what it finds, are changed: complaints
    // are part of that.
    runChanged: (what, changes) => changed(browser, url(what, 'simd'), changes),

    async close() {
      await browser.close();
      server.close();
    },
  };
}

async function changed(browser, url, { headers: change = (headers) => headers, missing }) {
  const page = await browser.newPage();
  try {
    await page.route('**/*', async (route) => {
      if (missing !== undefined && route.request().url().endsWith(missing)) {
        await route.fulfill({ status: 404 });
        return;
      }
      const response = await route.fetch();
      await route.fulfill({ response, headers: change(response.headers()) });
    });
    await page.goto(url);
    return await page.evaluate(() => globalThis.outcome);
  } finally {
    await page.close();
  }
}
