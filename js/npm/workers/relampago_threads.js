// A worker among those that share a memory. Its module has other exports than that of one thread.

import load, { runThread, startThreads } from '#computing';
import { sharing } from '../../common/sharing.js';
import { root } from './relampago_worker.js';

Object.assign(root, sharing(load, runThread, startThreads));
