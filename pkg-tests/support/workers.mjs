// Pages that ask for devices in workers, brought into a browser in one way or another.

import { launch, outcome } from './browser.mjs';
import { serve } from './serve.mjs';

// Opens the pages of a folder in a browser.
export async function open(folder, engine) {
  const server = await serve(folder);
  const browser = await launch(engine);
  const url = (origin, what, backend) => `${origin}/workers.html?case=${what}&backend=${backend}`;
  return {
    version: browser.version(),

    // What a case returns, with every request of its page. A complaint on the console is a failure.
    run: (what, backend = 'simd') => outcome(browser, url(server.url, what, backend)),

    // What a case returns where the server's headers, or what it finds, are changed: complaints
    // are part of that.
    async runChanged(what, changes) {
      const changed = await serve(folder, changes);
      const page = await browser.newPage();
      try {
        await page.goto(url(changed.url, what, 'simd'));
        return await page.evaluate(() => globalThis.outcome);
      } finally {
        await page.close();
        changed.close();
      }
    },

    async close() {
      await browser.close();
      server.close();
    },
  };
}
