import * as relampago from 'relampago';
import * as train from 'relampago/train';
import { runGradients } from './gradients.js';

const asked = new URLSearchParams(location.search);
globalThis.outcome = runGradients({ ...relampago, ...train, default: relampago.default }, { backend: asked.get('backend'), worker: asked.has('worker') });
