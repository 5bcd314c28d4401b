// A worker among those that tune in a shared memory.

import './llm_threads.js';
