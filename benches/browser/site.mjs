// The folder to serve: the pages, each contestant bundled as an application would have it, and
// the WebAssembly modules beside them.

import { cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { fresh } from '../../pkg-tests/support/install.mjs';
import { contestants, gpuContestants } from './contestants.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const modules = join(here, 'node_modules');

const ORT = 'onnxruntime-web/dist/ort-wasm-simd-threaded';
const ORT_GPU = `${ORT}.asyncify`;
const TFJS = '@tensorflow/tfjs-backend-wasm/dist';
const FILES = [
  [`${ORT}.mjs`, 'ort/glue.js'],
  [`${ORT}.wasm`, 'ort/ort.wasm'],
  [`${ORT_GPU}.mjs`, 'ort/gpu_glue.js'],
  [`${ORT_GPU}.wasm`, 'ort/ort_gpu.wasm'],
  [`${TFJS}/tfjs-backend-wasm-simd.wasm`, 'tfjs/tfjs-backend-wasm-simd.wasm'],
  [`${TFJS}/tfjs-backend-wasm-threaded-simd.wasm`, 'tfjs/tfjs-backend-wasm-threaded-simd.wasm'],
];

// The folder, and the version of each package in it.
export async function site(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const installed = join(fresh('browser-bench'), 'node_modules');
  const relampago = join(installed, 'relampago');
  cpSync(relampago, join(folder, 'relampago'), { recursive: true });
  // esbuild leaves the addresses of the workers' scripts and of their module alone.
  ['worker', 'threads'].forEach((name) => cpSync(join(relampago, `workers/relampago_${name}.js`), join(folder, `relampago_${name}.js`)));
  ['relaxed', 'simd128'].forEach((name) => cpSync(join(relampago, `relampago_shared_${name}.wasm`), join(folder, `relampago_shared_${name}.wasm`)));
  FILES.forEach(([from, to]) => cpSync(join(modules, from), join(folder, to)));
  ['page.html', 'startup.html', 'tensors.html', 'threads.html', 'webgpu.html'].forEach((page) => cpSync(join(here, page), join(folder, page)));
  const found = versions(relampago);
  await bundle(folder, installed, found);
  return { folder, versions: found };
}

function bundle(folder, installed, versions) {
  return build({
    entryPoints: ['page.js', 'startup.js', 'tensors_page.js', 'threads.js', 'webgpu.js'].map((file) => join(here, file)),
    outdir: folder,
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    nodePaths: [installed],
    define: { VERSIONS: JSON.stringify(versions) },
    // Without it the loader of ort's WebAssembly module would be in the bundle, and its worker
    // would be the whole bundle.
    conditions: ['onnxruntime-web-use-extern-wasm'],
    logLevel: 'error',
  });
}

function versions(relampago) {
  const packages = [...contestants, ...gpuContestants].flatMap((contestant) => contestant.package ?? []);
  const folders = packages.map((name) => [name, join(modules, name)]);
  return Object.fromEntries([['relampago', relampago], ...folders].map(([name, folder]) => [name, version(folder)]));
}

const version = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'))).version;
