// A worker among those that share a memory. Its module has other exports than that of one thread.

import load, { runThread, startThreads } from '#llm';
import { sharing } from '../common/sharing.js';
import { engine } from './llm_worker.js';

Object.assign(engine, sharing(load, runThread, startThreads));
