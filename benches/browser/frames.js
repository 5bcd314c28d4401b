// Contestants in frames of a page, for machines where there may be nothing but a browser.

import { query } from './contestants.mjs';

// A peer that has not begun by then counts as failed.
const PATIENCE_MS = 60_000;

// Opens a contestant's page in a frame, with further words of its query.
export function open(contestant, threads, words = {}) {
  const frame = document.createElement('iframe');
  frame.src = `page.html?${query(contestant, threads)}&${new URLSearchParams(words)}`;
  return new Promise((resolve) => {
    frame.onload = () => resolve({ contestant, bench: benchOf(frame.contentWindow, contestant) });
    document.body.append(frame);
  });
}

function benchOf(page, { name }) {
  const late = () => new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`${name} took more than ${PATIENCE_MS} ms to begin`)), PATIENCE_MS);
  });
  return {
    prepare: (row) => Promise.race([page.bench.prepare(row), late()]),
    sample: () => page.bench.sample(),
    close: () => page.bench.close(),
  };
}
