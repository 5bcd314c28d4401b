import * as llm from 'relampago/llm';
import { hurry, visit } from './llm-sources.js';

// A page that computes for seconds does not hear what arrives.
if (location.search !== '?patient') {
  hurry(llm);
}
globalThis.visit = (source, options) => visit(llm, source, options);
globalThis.LanguageModel = llm.LanguageModel;
