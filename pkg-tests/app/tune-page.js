import * as llm from 'relampago/llm';
import { losses, taught } from './tune.js';

const query = new URLSearchParams(location.search);
const options = JSON.parse(query.get('options') ?? '{}');

async function tiny() {
  const bytes = new Uint8Array(await (await fetch('tiny.gguf')).arrayBuffer());
  return taught(llm, 'tiny.gguf', bytes, options);
}

async function model() {
  const { texts, tuning } = await (await fetch('tuning.json')).json();
  return losses(llm, 'model.gguf', texts, { ...tuning, ...JSON.parse(query.get('tuning') ?? '{}') }, options);
}

globalThis.outcome = query.has('losses') ? model() : tiny();
