import * as relampago from 'relampago';
import { runTensors } from './tensors.js';

const asked = new URLSearchParams(location.search);
const options = { backend: asked.get('backend'), worker: asked.has('worker'), count: Number(asked.get('count')) };
globalThis.outcome = runTensors(relampago, options);
