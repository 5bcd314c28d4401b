import * as relampago from 'relampago';
import { run } from './app.js';

self.onmessage = async ({ data: backend }) => {
  try {
    self.postMessage(await run(relampago, backend));
  } catch (error) {
    self.postMessage({ failure: `${error}\n${error.stack}` });
  }
};
