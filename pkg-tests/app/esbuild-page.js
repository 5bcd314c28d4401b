// esbuild leaves `new URL(…, import.meta.url)` alone, so its users name the module themselves.
import * as relampago from 'relampago';
import wasmUrl from 'relampago/relampago_simd128.wasm';
import { run } from './app.js';

globalThis.outcome = run(relampago, new URLSearchParams(location.search).get('backend'), wasmUrl);
