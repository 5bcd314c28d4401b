import * as relampago from 'relampago';
import { runGradients } from './gradients.js';

const asked = new URLSearchParams(location.search);
globalThis.outcome = runGradients(relampago, { backend: asked.get('backend'), worker: asked.has('worker') });
