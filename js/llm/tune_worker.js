// A worker that tunes: under the condition `tune` its module is the one that has the gradients.

import './llm_worker.js';
