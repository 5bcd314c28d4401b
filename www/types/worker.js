// The worker that checks types, with TypeScript and the package's types from beside it.

import { declarations } from './declarations.js';
import { serviceOf } from './service.js';

let service;

addEventListener('message', async ({ data: { number, code } }) => {
  try {
    service ??= declarations().then(serviceOf);
    postMessage({ number, errors: (await service)(code) });
  } catch (error) {
    service = undefined;
    postMessage({ number, failure: `The types cannot be checked: ${error.message}` });
  }
});
