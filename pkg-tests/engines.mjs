// Writes docs/engines.md: what runs where, from what the tests recorded.
// `node engines.mjs RECORDS` reads the files of that folder; see support/ran.mjs. Fails where the document
// named other hosts, back-ends or tests; versions and instruction sets change with the machine.

import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const DOCUMENT = fileURLToPath(new URL('../docs/engines.md', import.meta.url));
const HEAD = `# What runs where

\`cargo xtask test\` writes this table from what passed, so that it is true; the versions are those of the last
run that was committed. [The guide](guide/bundlers-and-hosts.md) says what to write for each.

| engine, host or bundler | version | instructions | back-ends | what passes there |
|---|---|---|---|---|
`;
/** The order of the rows; what is not named here follows. */
const ORDER = [
  'Chromium', 'Firefox', 'WebKit', 'Vite', 'webpack', 'esbuild', 'Node', 'Deno', 'Bun', 'Next, Turbopack', 'Next, webpack', 'Jest', 'Vitest',
];

const [folder] = process.argv.slice(2);
const text = HEAD + rows(records(folder)).map((cells) => `| ${cells.join(' | ')} |\n`).join('');
console.log(text);
// WebKitGTK is on Linux alone, and elsewhere other engines have WebGPU.
if (process.platform === 'linux') {
  const before = readFileSync(DOCUMENT, 'utf8');
  writeFileSync(DOCUMENT, text);
  if (lasting(before) !== lasting(text)) {
    console.error('docs/engines.md said something else than this of what runs where; it is rewritten: commit it if that is meant');
    process.exitCode = 1;
  }
}

function records(folder) {
  const lines = readdirSync(folder).sort().flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n'));
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
}

function rows(all) {
  const place = (host) => (ORDER.includes(host) ? ORDER.indexOf(host) : ORDER.length);
  const hosts = [...new Set(all.map(({ host }) => host))].sort((a, b) => place(a) - place(b));
  return hosts.map((host) => {
    const own = all.filter((record) => record.host === host);
    const each = (name) => [...new Set(own.map((record) => record[name]).filter((value) => value !== undefined))].sort();
    const backends = each('backend').map((backend) => ({ simd: 'SIMD', webgpu: 'WebGPU' })[backend]);
    return [host, each('version').join(', '), each('instructionSet').join(', '), backends.join(', '), each('what').join(', ')];
  });
}

/** The cells of the document that do not change with a machine. */
function lasting(document) {
  const rows = document.split('\n').filter((line) => line.startsWith('| ')).map((line) => line.split('|'));
  return JSON.stringify(rows.map(([, host, , , backends, what]) => [host, backends, what]));
}
