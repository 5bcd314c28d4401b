// The package beside its peers in one headless browser: `node run.mjs --help`.

import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { serve } from '../../pkg-tests/support/serve.mjs';
import { barsOf, chart } from './chart.mjs';
import { contestants, gpuContestants } from './contestants.mjs';
import { race } from './race.mjs';
import { report } from './report.mjs';
import { site } from './site.mjs';
import { startup } from './startup.mjs';
import { raceOnGpu } from './webgpu.mjs';

const HELP = `node run.mjs [--rounds N] [--only REGEX] [--startup] [--webgpu | --bundle] [--out DIR]
  --rounds N    turns of each contestant in each row; 15 unless given
  --only REGEX  rows whose name matches; '^$' for none
  --startup     also start-up time and download size
  --webgpu      on WebGPU instead, here by a software adapter, beside the peers' WebGPU back-ends
  --bundle      only writes what a machine with a GPU and neither Node nor network needs for that:
                DIR/site, and DIR/drive.py to serve it there and open it in its Chromium
  --out DIR     for browser.json, browser.md and browser.svg; target/bench unless given
RELAMPAGO_TARBALL names the packed package; otherwise it is the one that \`cargo xtask package\` made.`;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '15' },
    only: { type: 'string', default: '' },
    startup: { type: 'boolean', default: false },
    webgpu: { type: 'boolean', default: false },
    bundle: { type: 'boolean', default: false },
    out: { type: 'string', default: fileURLToPath(new URL('../../target/bench', import.meta.url)) },
    help: { type: 'boolean', default: false },
  },
});

if (options.help) {
  console.log(HELP);
} else if (options.bundle) {
  await site(join(options.out, 'site'));
  copyFileSync(new URL('drive.py', import.meta.url), join(options.out, 'drive.py'));
  console.log(`copy ${options.out}/{site,drive.py} to the machine, and there: python3 drive.py site results.json`);
} else {
  const results = await measure(options);
  write(options.out, results);
  process.exitCode = wrong(results).length === 0 ? 0 : 1;
}

async function measure(options) {
  const rounds = Number(options.rounds);
  if (!Number.isInteger(rounds) || rounds < 1) {
    throw new Error(`--rounds takes a positive integer, not ${options.rounds}`);
  }
  const load = { before: loadavg() };
  const { folder, versions } = await site(join(options.out, 'site'));
  const server = await serve(folder);
  try {
    const raced = await (options.webgpu ? raceOnGpu : race)(server.url, { rounds, only: new RegExp(options.only), progress });
    const starting = options.webgpu ? gpuContestants.filter(({ halves }) => !halves) : contestants;
    const started = options.startup ? await startup(starting, server.url, folder, progress) : [];
    load.after = loadavg();
    return { ...machine(), load, versions, rounds, ...raced, startup: started };
  } finally {
    server.close();
  }
}

function machine() {
  const processors = cpus();
  const given = process.argv.slice(2);
  return {
    date: new Date().toISOString(),
    command: ['cargo xtask bench browser', ...(given.length > 0 ? ['--', ...given] : [])].join(' '),
    cpu: processors[0].model.trim(),
    cores: processors.length,
    node: process.versions.node,
  };
}

function write(folder, results) {
  mkdirSync(folder, { recursive: true });
  // The results come first: they took longest, and the rest can be made of them again.
  writeFileSync(join(folder, 'browser.json'), `${JSON.stringify(results, null, 2)}\n`);
  const markdown = report(results);
  writeFileSync(join(folder, 'browser.md'), markdown);
  if (results.rows.length > 0) {
    writeFileSync(join(folder, 'browser.svg'), chart('In the browser, without a GPU', barsOf(results.rows)));
  }
  console.log(markdown);
  wrong(results).forEach(({ name }) => console.error(`relampago is wrong: ${name}`));
}

// Rows that the package itself gets wrong.
function wrong({ rows }) {
  return rows.filter(({ contestants }) => contestants.some(({ ours, wrong }) => ours && wrong));
}

function progress(what) {
  console.error(what);
}
