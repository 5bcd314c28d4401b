// The results as a section of Markdown. It runs in Node and on the page itself.

import { comparison } from './compare.mjs';

export function report(results) {
  const { rows, startup } = results;
  const sections = [introduction(results)];
  if (rows.length > 0) {
    sections.push(tables(rows));
  }
  if (startup.length > 0) {
    sections.push(startUps(startup));
  }
  return `${sections.filter(Boolean).join('\n\n')}\n`;
}

function tables(rows) {
  const { contestants } = rows.reduce((a, b) => (b.contestants.length > a.contestants.length ? b : a));
  const names = contestants.map(({ name }) => name);
  return [times(rows, contestants), rates(rows, names), notes(rows)].filter(Boolean).join('\n\n');
}

// A page does not know the processor that it runs on.
function introduction({ date, command, cpu, cores, load, adapter, chromium, versions, rounds }) {
  const packages = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const facts = [
    `date: ${date.slice(0, 10)}`,
    `command: \`${command}\``,
    cpu && `processor: ${cpu}, ${cores} cores`,
    load && `load: ${load.before[0].toFixed(2)} before, ${load.after[0].toFixed(2)} after`,
    `browser: Chromium ${chromium}`,
    `packages: ${packages.join(', ')}`,
    `medians of ${rounds} rounds`,
  ];
  const heading = adapter === undefined ? `SIMD, ${cpu}` : `WebGPU, ${adapter || 'unknown adapter'}`;
  return [`## ${heading}\n`, ...facts.filter(Boolean).map((fact) => `- ${fact}`)].join('\n');
}

function times(rows, contestants) {
  const names = contestants.map(({ name }) => name);
  const ours = contestants.filter(({ ours }) => ours).map(({ name }) => name);
  const body = rows.map((row) => {
    const { best, ratios } = comparison(row);
    const cells = names.map((name) => cell(find(row, name)));
    const ratio = (name) => ratios.find((of) => of.name === name)?.ratio.toFixed(2) ?? '–';
    return [row.name, ...cells, best ?? '–', ...ours.map(ratio)];
  });
  return table(['ms', ...names, 'fastest other', ...ours.map((name) => `× ${name}`)], body);
}

const find = (row, name) => row.contestants.find((contestant) => contestant.name === name);

function cell(contestant) {
  if (contestant?.failure) {
    return 'failed';
  }
  return contestant?.median === undefined ? '–' : `${digits(contestant.median)}${contestant.right ? '' : ' †'}`;
}

function rates(rows, names) {
  const products = rows.filter(({ flop }) => flop);
  const body = products.map((row) => [row.name, ...names.map((name) => find(row, name)?.gflops?.toFixed(1) ?? '–')]);
  return body.length > 0 && table(['GFLOP/s', ...names], body);
}

function notes(rows) {
  return rows.flatMap(({ name, tolerance, contestants }) =>
    contestants.flatMap((contestant) => note(contestant, name, tolerance))).join('\n');
}

function note({ name, failure, error, right }, row, tolerance) {
  if (failure) {
    return [`- ${row}: ${name} failed: ${failure}`];
  }
  if (error === undefined || right) {
    return [];
  }
  const off = `off by ${error.toExponential(1)} of the largest value`;
  return [`- † ${row}: ${name} is ${off}; ${tolerance.toExponential()} is asked.`];
}

function startUps(startup) {
  const body = startup.map(({ name, milliseconds, gzip }) => [name, milliseconds.toFixed(0), (gzip / 1000).toFixed(1)]);
  return table(['start-up in a fresh browser', 'ms to the first product of 256 × 256', 'download, KB of gzip'], body);
}

function table(head, body) {
  const rule = head.map((_, i) => (i === 0 ? '---' : '---:'));
  return [head, rule, ...body].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

// Three significant digits, without an exponent.
function digits(value) {
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(value)));
  return value.toFixed(Math.min(decimals, 4));
}
