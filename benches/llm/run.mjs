// Language models beside llama.cpp: natively, and in Chromium beside wllama. One run, in turns.
// `cargo xtask bench llm`, which sets the variables; `--rounds N`, `--only TEXT` of a row's name.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { median } from '../browser/statistics.mjs';
import { memory } from './memory.mjs';
import { visit } from './visit.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '3' }, only: { type: 'string', default: '' } } });
const { RELAMPAGO_BENCH: program, RELAMPAGO_MODEL: model, RELAMPAGO_PACKAGE: folder, RELAMPAGO_REPORT: report, XLLAMACPP: llama } = process.env;

const PROMPT = `Describe how a thunderstorm grows. Warm and moist air rises, cools and condenses into a cloud. The drops release
heat, and the air rises faster. Ice crystals collide above the freezing level and separate charges: the light ones
become positive and rise, the heavy ones negative and sink. Where the field is strong enough, the air breaks down and
lightning joins the two. Rain and cold air then fall, spread over the ground, and lift more warm air in front of the
storm. A storm of many cells may live for hours, since each cell feeds the next. In the end the cold air cuts off the
warm one, and`.replaceAll('\n', ' ');
const TOKENS = 64;
/** `<|im_end|>` and `<|endoftext|>` of SmolLM2. */
const ENDS = [0, 2];

const parsed = (command, args, env) =>
  JSON.parse(execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, ...env } }));

const { ids } = parsed(program, ['--model', model, '--tokenize', JSON.stringify(PROMPT)]);
const native = (threads) => ['--model', model, '--tokens', ids.join(), '--n', String(TOKENS), '--threads', String(threads)];

/** The context of timed runs, and relampago's default, for which memory is measured. */
const CONTEXT = 512;
const DEFAULT_CONTEXT = 2048;

const site = join(here, '../../target/bench/llm');
function address(server, query) {
  const search = new URLSearchParams({ prompt: PROMPT, tokens: TOKENS, ends: ENDS.join(), context: CONTEXT, ...query });
  return `${server.url}/page.html?${search}`;
}

const page = (query) => () => visit(site, headers, (server) => address(server, { ...query, to: 'results' }), (_, text) => {
  const result = JSON.parse(text);
  if (result.failure) {
    throw new Error(result.failure);
  }
  return result;
});

const RELAMPAGO = { contestant: 'relampago', device: 'simd' };
const WLLAMA = { contestant: 'wllama' };

function writeSite() {
  rmSync(site, { recursive: true, force: true });
  mkdirSync(site, { recursive: true });
  cpSync(folder, join(site, 'relampago'), { recursive: true });
  cpSync(join(here, 'node_modules/@wllama/wllama/esm'), join(site, 'wllama'), { recursive: true });
  for (const file of ['page.html', 'page.js', '../browser/deliver.js']) {
    cpSync(join(here, file), join(site, basename(file)));
  }
  symlinkSync(model, join(site, 'model.gguf'));
}

/** Without isolation nothing has threads. wllama starts its worker from a blob. */
const headers = ({ 'content-type': type }) => ({ 'content-type': type });

function rows() {
  const threads = [1, 2].map((count) => ({
    name: `native, ${count} thread${count > 1 ? 's' : ''}`,
    ours: async () => parsed(program, native(count)),
    peer: async () => parsed('python3', [join(here, 'llama.py'), ...native(count)], { PYTHONPATH: llama }),
  }));
  const inPage = {
    name: 'Chromium, SIMD, 1 thread',
    ours: page(RELAMPAGO),
    peer: page(WLLAMA),
  };
  return [...threads, inPage].filter(({ name }) => name.includes(options.only));
}

const rate = (runs, count, ms) => median(runs.map(({ runs: [run] }) => run[count] / (run[ms] / 1000)));

function figures(runs) {
  const [{ runs: [{ n_prompt, n_gen }] }] = runs;
  return {
    prompt: rate(runs, 'n_prompt', 'prefill_ms'),
    answer: rate(runs, 'n_gen', 'decode_ms'),
    load: median(runs.map(({ load_ms }) => load_ms)),
    n_prompt,
    n_gen,
  };
}

function line(name, who, { prompt, answer, load }, peer) {
  const of = (own, other) => (peer ? ` (${(own / other).toFixed(2)})` : '');
  return `| ${name} | ${who} | ${prompt.toFixed(1)}${of(prompt, peer?.prompt)} | ${answer.toFixed(1)}${of(answer, peer?.answer)} | ${load.toFixed()}${of(load, peer?.load)} |`;
}

/** The rows of the table of memory, in MB: resident memory, and in parentheses the share of it. */
async function memoryRows() {
  const rows = [];
  for (const query of [RELAMPAGO, WLLAMA].filter(() => 'Chromium, memory'.includes(options.only))) {
    console.error(`memory: ${query.contestant}`);
    const measured = await memory(site, headers, (server) => address(server, { ...query, context: DEFAULT_CONTEXT, hold: true }));
    const cell = ({ rss, pss }) => `${(rss / 1e6).toFixed()} (${(pss / 1e6).toFixed()})`;
    rows.push(`| ${query.contestant} | ${[measured.empty, measured.loaded, measured.answered].map(cell).join(' | ')} |`);
  }
  return rows;
}

async function main() {
  writeSite();
  const before = loadavg()[0];
  const measured = rows().map((row) => ({ ...row, own: [], other: [] }));
  const memories = await memoryRows();
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const row of measured) {
      console.error(`round ${round + 1}: ${row.name}`);
      row.own.push(await row.ours());
      row.other.push(await row.peer());
    }
  }
  const lines = measured.flatMap(({ name, own, other }) => {
    const [ours, peer] = [figures(own), figures(other)];
    return [line(name, 'relampago', ours, peer), line('', name.startsWith('native') ? 'llama.cpp' : 'wllama', peer)];
  });
  const n_prompt = measured[0]?.own[0].runs[0].n_prompt ?? ids.length;
  const { version } = JSON.parse(readFileSync(join(here, 'node_modules/@wllama/wllama/package.json')));
  const text = `## SIMD, ${cpus()[0].model.trim()}

- date: ${new Date().toISOString().slice(0, 10)}
- command: \`cargo xtask bench llm\`
- processor: ${cpus()[0].model.trim()}, ${cpus().length} cores; load ${before.toFixed(2)} before
- model: SmolLM2-135M, Q4_1; a prompt of ${n_prompt} tokens, ${TOKENS} greedy ones
- peers: llama.cpp through xllamacpp ${llama.split('-').at(-1)}, wllama ${version}
- medians of ${options.rounds} rounds; in parentheses the ratio to the peer

| | | prompt, tokens/s | answer, tokens/s | load, ms |
|---|---|---:|---:|---:|
${lines.join('\n')}

Memory of the page's process in Chromium with a context of ${DEFAULT_CONTEXT} tokens, in MB: resident, and in parentheses
its share where processes share pages (PSS).

| | empty page | loaded | after the answer |
|---|---:|---:|---:|
${memories.join('\n')}
`;
  mkdirSync(dirname(report), { recursive: true });
  writeFileSync(report, text);
  console.log(text);
}

await main();
