// Checks the types of code in a worker, which loads TypeScript when it is first asked.

const WORKER = new URL('worker.js', import.meta.url);

let worker;
let count = 0;
/** The checks under way, by number. */
const waiting = new Map();

/** Returns the errors in a module's syntax and types: `{ line, message, isSyntax }` each. */
export function check(code) {
  worker ??= start();
  return new Promise((resolve, reject) => {
    waiting.set(++count, { resolve, reject });
    worker.postMessage({ number: count, code });
  });
}

function start() {
  const started = new Worker(WORKER, { type: 'module' });
  started.onmessage = ({ data: { number, errors, failure } }) => {
    const { resolve, reject } = waiting.get(number);
    waiting.delete(number);
    failure ? reject(new Error(failure)) : resolve(errors);
  };
  started.onerror = ({ message }) => {
    worker = undefined;
    waiting.forEach(({ reject }) => reject(new Error(message || 'TypeScript cannot be loaded, so that types are not checked.')));
    waiting.clear();
  };
  return started;
}
