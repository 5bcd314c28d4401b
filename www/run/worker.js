// Runs a sample in a worker of its own, which its page can end also in an endless loop. Only for this file does the server
// allow scripts that are made in memory.

import { format } from './format.js';
import { located } from './located.js';
import { describe } from './results.js';

const LEVELS = ['debug', 'log', 'info', 'warn', 'error'];

for (const level of LEVELS) {
  console[level] = (...values) => postMessage({ type: 'output', level, text: values.map((value) => format(value)).join(' ') });
}

addEventListener('message', ({ data: { code } }) => run(code), { once: true });

/** Runs `code`, whose imports are URLs. Its exports are its results. */
async function run(code) {
  const url = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
  const fail = (error) => postMessage({ type: 'error', ...located(error, url) });
  addEventListener('unhandledrejection', (event) => {
    event.preventDefault();
    fail(event.reason);
  });
  addEventListener('error', (event) => {
    event.preventDefault();
    fail(event.error ?? event.message);
  });
  try {
    const exports = await import(url);
    postMessage({ type: 'end', results: await describe(exports) });
  } catch (error) {
    fail(error);
  }
}
