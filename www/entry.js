// Loads what the pages need of what is built. `cargo xtask demo` serves them while it still builds some of it.

const PAUSE_MS = 2000;
/** How long after its start a page waits for an entry. Slow machines build it in minutes. */
const PATIENCE_MS = 30 * 60_000;

/**
 * Imports the package's entry at `url` as soon as the server has it.
 * @param {URL} url
 * @param {(text: string) => void} show Tells the visitor that the page waits.
 * @param {AbortSignal} [signal] Ends the waiting.
 */
export async function entryAt(url, show, signal) {
  // A failed import may be remembered by the browser, so a request comes first.
  await responseAt(url, show, signal);
  return import(url);
}

/** Returns the response for the file at `url` as soon as the server has it. */
export async function responseAt(url, show, signal) {
  for (;;) {
    const response = await fetch(url, { signal }).catch(({ message }) => ({ ok: false, status: message }));
    signal?.throwIfAborted();
    if (response.ok) {
      return response;
    }
    if (response.status !== 404 || performance.now() > PATIENCE_MS) {
      throw new Error(`The file ${url.pathname} is missing: ${response.status}`);
    }
    show('The package for this page is still being built; the page goes on when it is there.');
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
