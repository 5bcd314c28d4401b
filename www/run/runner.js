// Runs samples with the package that is served beside the pages.

import { responseAt } from '../entry.js';
import { check } from '../types/check.js';
import { entriesOf, withPackageAt } from './sample.js';

const PACKAGE = new URL('../relampago/', import.meta.url);
const WORKER = new URL('worker.js', import.meta.url);

/**
 * Runs a sample in a new worker, which ends with it or with `signal`.
 * @param {string} code
 * @param {object} heard
 * @param {(level: string, text: string) => void} heard.output Gets each line that the sample prints.
 * @param {(text: string) => void} heard.show Tells the visitor that the package is still being built.
 * @param {AbortSignal} heard.signal
 * @returns {Promise<{ results?: object[], error?: { message: string, line?: number } }>}
 */
export async function run(code, { output, show, signal }) {
  await Promise.all(entriesOf(code).map((entry) => responseAt(new URL(entry, PACKAGE), show, signal)));
  const worker = new Worker(WORKER, { type: 'module' });
  try {
    return await new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
      worker.onerror = ({ message }) => reject(new Error(message || 'The worker that runs samples cannot be loaded.'));
      worker.onmessage = ({ data: { type, ...data } }) => {
        if (type === 'output') {
          output(data.level, data.text);
        } else {
          resolve(type === 'error' ? withLine(data, code).then((error) => ({ error })) : data);
        }
      };
      worker.postMessage({ code: withPackageAt(code, PACKAGE) });
    });
  } finally {
    worker.terminate();
  }
}

/** Returns the error with its line. Chromium names none for code that cannot be parsed, but TypeScript does. */
async function withLine(error, code) {
  if (error.line || !error.message.startsWith('SyntaxError')) {
    return error;
  }
  const errors = await check(code).catch(() => []);
  return { ...error, line: errors.find(({ isSyntax }) => isSyntax)?.line };
}
