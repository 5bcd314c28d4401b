// With esbuild the page names the module; the workers are given it compiled.
import * as relampago from 'relampago';
import wasmUrl from 'relampago/relampago_simd128.wasm';
import * as cases from './workers-cases.js';

const query = new URLSearchParams(location.search);
const named = { ...relampago, default: () => relampago.default(wasmUrl) };
globalThis.outcome = cases[query.get('case')](named, query.get('backend') ?? 'simd');
