import * as relampago from 'relampago';
import * as cases from './workers-cases.js';

const query = new URLSearchParams(location.search);
globalThis.outcome = cases[query.get('case')](relampago, query.get('backend') ?? 'simd');
