// The memory of a page with a model: that of its renderer process, once the model is loaded and once it has answered.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { FLAGS } from '../../pkg-tests/support/browser.mjs';
import { serve } from '../../pkg-tests/support/serve.mjs';

/** The time in which a browser returns memory that it does not use. */
const REST = 3000;
const PATIENCE = 300_000;

/**
 * Opens a page of a site, which `address` names by its server, in a browser of its own; returns bytes of the empty page, with
 * the model and after the answer. The page asks for `measured?NAME` and goes on when that is answered. Nothing else talks
 * to the browser: for those who control it by its protocol, the page's process keeps copies of what it fetches.
 */
export async function memory(site, headers, address) {
  const profile = mkdtempSync(join(tmpdir(), 'relampago-memory-'));
  const measured = {};
  let end;
  const ended = new Promise((resolve) => {
    end = resolve;
  });
  const answer = (_, response, { pathname, search }) => {
    if (pathname !== '/measured') {
      return false;
    }
    const name = search.slice(1);
    wait(REST).then(() => {
      measured[name] = residentBytes(profile);
      response.end();
      name === 'answered' && end();
    });
    return true;
  };
  const server = await serve(site, { headers, answer });
  const browser = spawn(process.env.CHROME ?? '/usr/bin/chromium', [...FLAGS, `--user-data-dir=${profile}`, address(server)], { stdio: 'ignore' });
  const timer = setTimeout(end, PATIENCE);
  try {
    await ended;
    if (!measured.answered) {
      throw new Error('the page has not answered');
    }
    return measured;
  } finally {
    clearTimeout(timer);
    const gone = new Promise((resolve) => browser.once('exit', resolve));
    browser.kill();
    await gone;
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  }
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
