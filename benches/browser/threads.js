// The race with several numbers of threads, run by the page itself as `webgpu.js` does. `?rounds=N&only=REGEX&to=URL`.

import { threadContestants } from './contestants.mjs';
import { deliver } from './deliver.js';
import { open } from './frames.js';
import { threadRows } from './rows.js';
import { raceRow } from './turns.mjs';

// Threads that are done spin for a while; the next in turn should not have to share with them.
const PAUSE_MS = 50;

const { rounds = '9', only = '' } = Object.fromEntries(new URLSearchParams(location.search));

globalThis.outcome = run().then(deliver, (error) => deliver({ failure: String(error.stack ?? error) }));

async function run() {
  const most = navigator.hardwareConcurrency;
  const present = threadContestants.filter(({ threads }) => threads <= most);
  const racers = await Promise.all(present.map((contestant) => open(contestant, contestant.threads, { among: 'threads' })));
  const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  const chosen = threadRows.filter(({ name }) => new RegExp(only).test(name));
  const rows = [];
  for (const row of chosen) {
    rows.push({ name: row.name, contestants: await raceRow(racers, row, Number(rounds), pause) });
  }
  return { cores: most, versions: VERSIONS, markdown: tableOf(present, rows) };
}

// Medians in milliseconds.
function tableOf(present, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const time = ({ median, failure, wrong }) => (wrong ? 'wrong' : (median?.toFixed(3) ?? failure ?? '–'));
  return [
    line(['', ...present.map(({ name }) => name)]),
    line(['---', ...present.map(() => '---:')]),
    ...rows.map(({ name, contestants }) => line([name, ...contestants.map(time)])),
  ].join('\n');
}
