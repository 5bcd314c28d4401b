// A page in a browser that nothing controls: for those who control it by its protocol, the page's process keeps copies of
// what it fetches, which take memory and time.

import { spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FLAGS } from '../../pkg-tests/support/browser.mjs';
import { serve } from '../../pkg-tests/support/serve.mjs';

const PATIENCE = 300_000;

/**
 * Opens a page of a site, which `address` names by its server. The page says by requests what it has done: `heard` gets each
 * POST's text with the rest of its path, and the browser's profile. The page goes on when that is done. Returns the first
 * result but `undefined`.
 */
export async function visit(site, headers, address, heard) {
  const profile = mkdtempSync(join(tmpdir(), 'relampago-visit-'));
  let end;
  const ended = new Promise((resolve, reject) => {
    end = { resolve, reject };
  });
  const answer = (request, response, { pathname }) => {
    if (request.method !== 'POST') {
      return false;
    }
    text(request)
      .then((body) => heard(pathname.slice(1), body, profile))
      .then((result) => response.end() && result !== undefined && end.resolve(result))
      .catch(end.reject);
    return true;
  };
  const server = await serve(site, { headers, answer });
  const browser = spawn(process.env.CHROME ?? '/usr/bin/chromium', [...FLAGS, `--user-data-dir=${profile}`, address(server)], { stdio: 'ignore' });
  const timer = setTimeout(() => end.reject(new Error(`${address(server)} has no result`)), PATIENCE);
  try {
    return await ended;
  } finally {
    clearTimeout(timer);
    const gone = new Promise((resolve) => browser.once('exit', resolve));
    browser.kill();
    await gone;
    server.close();
    // The browser's other processes may still write.
    await rm(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

async function text(request) {
  const chunks = [];
  for await (const chunk of request) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
