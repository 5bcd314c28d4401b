// Runs every operation on the visitor's GPU and on SIMD, and shows what holds.
//
// For checks and for the curious, `window.relampagoConformance` offers
//   ready    a promise of the report, which the button copies

import { judge } from './cases.js';
import { element } from './element.js';
import { deviceFor } from './engine.js';
import { responseAt } from './entry.js';
import { speeds } from './speed.js';
import { pause } from './timing.js';
import { tokenSpeed } from './token_speed.js';
import { explain, inMilliseconds } from './words.js';

const BACKENDS = [['GPU', 'gpu'], ['SIMD', 'simd']];
/** How long cases run before the page paints. */
const TURN_MS = 50;
/** The failures that are shown; the report has all. */
const SHOWN = 10;

const at = (id) => document.getElementById(id);
const say = (text) => { at('status').textContent = text; };
const inPercent = (share) => (share === Infinity ? '∞' : `${(100 * share).toFixed(0)} %`);

globalThis.relampagoConformance = { ready: check() };

async function check() {
  try {
    const [cases, collected] = await Promise.all(['cases.json', 'collected.json'].map(read));
    const devices = [];
    for (const [name, backend] of BACKENDS) {
      devices.push(await checked(name, backend, cases));
      showOperations(devices);
    }
    for (const device of devices) {
      await time(device);
      showSpeed(devices, collected);
    }
    const report = reportOf(devices);
    conclude(devices, cases.length);
    offer(report);
    return report;
  } catch (error) {
    at('notice').textContent = explain(error);
    at('notice').hidden = false;
    say('The page could not go on.');
    throw error;
  }
}

async function read(name) {
  const response = await responseAt(new URL(name, import.meta.url), say);
  return response.json();
}

/** Runs all cases on a back-end. */
async function checked(name, backend, cases) {
  try {
    const device = await deviceFor(backend, say);
    const result = { name, backend, device, info: { ...device.info }, operations: new Map(), failures: [] };
    show(name, described(result.info));
    await runAll(result, cases);
    return result;
  } catch (error) {
    show(name, explain(error));
    return { name, error, operations: new Map(), failures: [] };
  }
}

async function runAll({ name, device, operations, failures }, cases) {
  let painted = performance.now();
  for (const [i, each] of cases.entries()) {
    const { share, detail } = await judge(device, each).catch(({ message }) => ({ share: Infinity, detail: `${each.op}: ${message}` }));
    const operation = operations.get(each.op) ?? { cases: 0, right: 0, share: 0 };
    operation.cases++;
    operation.share = Math.max(operation.share, share);
    operations.set(each.op, operation);
    if (share <= 1) {
      operation.right++;
    } else {
      failures.push({ case: i, operation: each.op, arguments: each.arguments, detail });
    }
    if (performance.now() > painted + TURN_MS) {
      say(`${name}: ${i + 1} of ${cases.length} cases`);
      await pause();
      painted = performance.now();
    }
  }
}

async function time(result) {
  result.speed = [];
  if (!result.device) {
    return;
  }
  for await (const row of speeds(result.device)) {
    result.speed.push(row);
    say(`${result.name}: ${row.name} in ${inMilliseconds(row.milliseconds)}`);
  }
  say(`${result.name}: a token of a random model`);
  result.speed.push(await tokenSpeed(result.backend, say));
}

const described = ({ adapter, instructionSet, software }) =>
  adapter ? `${adapter}${software ? ', a program on the CPU' : ''}` : `instruction set ${instructionSet}`;

function show(name, text) {
  const row = element('div');
  row.append(element('dt', '', name), element('dd', '', text));
  at('devices').append(row);
}

function conclude(devices, count) {
  const tried = devices.filter(({ device }) => device);
  const sentences = tried.map(({ name, failures }) => `${name}: ${count - failures.length} of ${count} cases hold.`);
  say(sentences.join(' '));
  const failures = tried.flatMap(({ name, failures }) => failures.map(({ detail }) => `${name}: ${detail}`));
  at('failures').replaceChildren(...failures.slice(0, SHOWN).map((text) => element('li', '', text)));
}

function showOperations(devices) {
  const names = [...new Set(devices.flatMap(({ operations }) => [...operations.keys()]))];
  const rows = names.map((name) => [name, ...devices.map(({ operations }) => cellOf(operations.get(name)))]);
  fill('operations', ['operation', ...devices.map(({ name }) => name)], rows);
}

const cellOf = (operation) => {
  const cell = element('td', '', operation ? `${operation.right}/${operation.cases} · ${inPercent(operation.share)}` : '–');
  cell.classList.toggle('wrong', operation !== undefined && operation.right < operation.cases);
  return cell;
};

function showSpeed(devices, collected) {
  const here = devices.filter(({ speed }) => speed?.length);
  const names = [...new Set([...here.flatMap(({ speed }) => speed.map(({ name }) => name)), ...Object.keys(collected[0]?.milliseconds ?? {})])];
  const timeOf = ({ speed }, name) => speed.find((row) => row.name === name)?.milliseconds;
  const rows = names.map((name) => [
    name,
    ...here.map((device) => timed(timeOf(device, name))),
    ...collected.map(({ milliseconds }) => timed(milliseconds[name])),
  ]);
  const titles = [...here.map(({ name }) => `${name}, here`), ...collected.map(({ machine }) => machine)];
  fill('speed', ['', ...titles], rows);
}

const timed = (milliseconds) => element('td', '', milliseconds === undefined ? '–' : inMilliseconds(milliseconds));

/** Fills a table; the first cell of each row is its title. */
function fill(id, titles, rows) {
  const head = element('tr');
  head.append(...titles.map((title) => Object.assign(element('th', '', title), { scope: 'col' })));
  at(id).tHead.replaceChildren(head);
  at(id).tBodies[0].replaceChildren(...rows.map(([title, ...cells]) => {
    const row = element('tr');
    row.append(Object.assign(element('th', '', title), { scope: 'row' }), ...cells);
    return row;
  }));
}

function reportOf(devices) {
  const { userAgent, hardwareConcurrency } = navigator;
  return {
    userAgent,
    cores: hardwareConcurrency,
    isolated: crossOriginIsolated,
    devices: devices.map(({ name, error, info, operations, failures, speed }) => ({
      name,
      info,
      error: error && { code: error.code, message: error.message },
      cases: [...operations.values()].reduce((sum, { cases }) => sum + cases, 0),
      // JSON has no infinity.
      shares: Object.fromEntries([...operations].map(([name, { share }]) => [name, Number.isFinite(share) ? share : 'Infinity'])),
      failures,
      speed,
    })),
  };
}

function offer(report) {
  at('copy').disabled = false;
  at('copy').addEventListener('click', async () => {
    const text = JSON.stringify(report, undefined, 1);
    try {
      await navigator.clipboard.writeText(text);
      at('copied').textContent = 'Copied.';
    } catch ({ message }) {
      at('copied').textContent = `The browser refuses: ${message}`;
    }
  });
}
