// The memory of a page with a model: that of its renderer process, once the model is loaded and once it has answered.

import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { visit } from './visit.mjs';

/** The time in which a browser returns memory that it does not use. */
const REST = 3000;

/** Opens a page that holds a model; returns bytes of the empty page, with the model and after the answer. */
export function memory(site, headers, address) {
  const measured = {};
  return visit(site, headers, address, async (name, _, profile) => {
    await wait(REST);
    measured[name] = residentBytes(profile);
    return name === 'answered' ? measured : undefined;
  });
}

/**
 * The resident memory of the renderer that has most, which is the page's (others are empty), and its share of it: where
 * processes share memory, such as the browser's code, each has a part (PSS).
 */
function residentBytes(profile) {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const read = (id, file) => {
    try {
      return readFileSync(`/proc/${id}/${file}`, 'utf8');
    } catch {
      return ''; // It has ended.
    }
  };
  const isOwn = (command) => command.includes('--type=renderer') && command.includes(profile);
  const sizes = processes.filter((id) => isOwn(read(id, 'cmdline'))).map((id) => {
    const text = read(id, 'smaps_rollup');
    const [rss, pss] = ['Rss', 'Pss'].map((kind) => 1024 * Number(new RegExp(`^${kind}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0));
    return { rss, pss };
  });
  return sizes.reduce((most, each) => (each.rss > most.rss ? each : most));
}
