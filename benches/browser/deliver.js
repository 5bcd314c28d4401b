/** Sends a page's results to the URL of a server that takes them (`drive.py`), if the page was given one. */
export async function deliver(results) {
  const to = new URLSearchParams(location.search).get('to');
  if (to) {
    await fetch(to, { method: 'POST', body: JSON.stringify(results) }).catch(() => undefined);
  }
  return results;
}
