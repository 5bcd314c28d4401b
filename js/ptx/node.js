import { readingFiles } from '../common/node.js';
import init from './index.js';

export * from './index.js';
export default readingFiles(init);
