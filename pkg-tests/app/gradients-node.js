import * as relampago from 'relampago';
import { runGradients } from './gradients.js';

console.log(JSON.stringify(await runGradients(relampago, { backend: 'simd' })));
