import * as llm from 'relampago/llm';
import { hurry, visit } from './llm-sources.js';

hurry(llm);
globalThis.visit = (source, options) => visit(llm, source, options);
globalThis.LanguageModel = llm.LanguageModel;
