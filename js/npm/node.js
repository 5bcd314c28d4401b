import { readingFiles } from '../common/node.js';
import init, { host } from './index.js';

// Deno and Bun have the workers of browsers.
if (typeof Worker !== 'function') {
    host.workers = () => import('./workers/create_node.js');
}

export * from './index.js';
export default readingFiles(init);
