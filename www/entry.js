// Loads the package's entries. `cargo xtask demo` serves the pages while it still builds the entry of one of them.

const PAUSE_MS = 2000;
/** How long after its start a page waits for an entry. Slow machines build it in minutes. */
const PATIENCE_MS = 30 * 60_000;

/**
 * Imports the entry at `url` as soon as the server has it.
 * @param {URL} url
 * @param {(text: string) => void} show Tells the visitor that the page waits.
 * @param {AbortSignal} [signal] Ends the waiting.
 */
export async function entryAt(url, show, signal) {
  for (;;) {
    // A failed import may be remembered by the browser, so a request comes first.
    const { ok, status } = await fetch(url, { signal }).catch(({ message }) => ({ ok: false, status: message }));
    signal?.throwIfAborted();
    if (ok) {
      return import(url);
    }
    if (status !== 404 || performance.now() > PATIENCE_MS) {
      throw new Error(`The package's file ${url.pathname} is missing: ${status}`);
    }
    show('The package for this page is still being built; the page goes on when it is there.');
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
