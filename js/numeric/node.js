import { readingFiles } from '../common/node.js';
import init, { host } from './index.js';

const reading = readingFiles(init);
host.init = reading;

export * from './index.js';
export default reading;
