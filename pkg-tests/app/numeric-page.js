import * as relampago from 'relampago';
import 'relampago/numeric';
import 'relampago/train';
import { runNumeric } from './numeric.js';

async function run() {
  await relampago.default();
  const text = await (await fetch('./cases.txt')).text();
  return runNumeric(relampago, text, JSON.parse(new URLSearchParams(location.search).get('options')));
}

globalThis.outcome = run();
