// Next by Turbopack and by webpack: server and client components of the guide, and the application on
// both sides.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { launch } from '../support/browser.mjs';
import { writeSamples } from '../support/guide.mjs';
import { freshHost, hostProgram, hostVersion } from '../support/install.mjs';
import { ran } from '../support/ran.mjs';
import { verify } from '../support/verify.mjs';

/** The application in a route of the server, and on a page. */
const ROUTE = `
import * as relampago from 'relampago';
import { run } from '../../app.js';

export const dynamic = 'force-dynamic';
export const GET = async () => Response.json(await run(relampago, 'simd'));
`;
const PAGE = `'use client';

import * as relampago from 'relampago';
import { useEffect } from 'react';
import { run } from '../../app.js';

export default function Page() {
  useEffect(() => {
    globalThis.outcome = run(relampago, new URLSearchParams(location.search).get('backend'));
  }, []);
  return <p>relampago</p>;
}
`;

/** A route of a server that bundles the package. */
const BUNDLED = `
import init from 'relampago';

export const dynamic = 'force-dynamic';
export const GET = () => init().then(() => new Response('loaded'), ({ code, message }) => new Response(\`\${code}: \${message}\`));
`;

const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' };

for (const [bundler, title] of [['turbopack', 'Turbopack'], ['webpack', 'webpack']]) {
  describe(`next by ${bundler}`, () => {
    let server;
    let browser;
    before(async () => {
      const folder = freshHost(`next-${bundler}`);
      writeSamples('Next', folder);
      for (const [file, text] of [['whole/route.js', ROUTE], ['whole-page/page.jsx', PAGE]]) {
        mkdirSync(join(folder, 'app', file, '..'), { recursive: true });
        writeFileSync(join(folder, 'app', file), text);
      }
      build(folder, bundler);
      server = await start(folder);
      browser = await launch();
    });
    after(async () => {
      await browser?.close();
      server?.close();
    });
    const record = (what, facts) => ran(`Next, ${title}`, what, { version: hostVersion('next'), ...facts });

    test('a server component', async () => {
      const response = await fetch(server.url);
      assert.equal(response.status, 200);
      assert.match(await response.text(), /<output id="on-server">19 22 43 50<\/output>/);
      record('server component');
    });

    test('the whole application on the server', async () => {
      const results = await (await fetch(`${server.url}/whole`)).json();
      verify(results, 'simd');
      record('application on the server', results);
    });

    test('a client component', async () => {
      const page = await browser.newPage();
      await page.goto(server.url);
      await page.waitForFunction(() => document.querySelector('#in-browser')?.textContent !== '');
      assert.equal(await page.evaluate(() => document.querySelector('#in-browser').textContent), '19 22 43 50');
      await page.close();
      record('client component');
    });

    for (const backend of ['gpu', 'simd']) {
      test(`the whole application in the browser on ${backend}`, async () => {
        const page = await browser.newPage();
        await page.goto(`${server.url}/whole-page?backend=${backend}`);
        await page.waitForFunction(() => globalThis.outcome !== undefined);
        const results = await page.evaluate(() => globalThis.outcome);
        await page.close();
        verify(results, backend);
        record('application in the browser', results);
      });
    }
  });
}

test('where webpack bundles the package for the server, the error names the line of configuration', async () => {
  const folder = freshHost('next-bundled');
  writeSamples('Next', folder);
  rmSync(join(folder, 'next.config.mjs'));
  mkdirSync(join(folder, 'app/bundled'), { recursive: true });
  writeFileSync(join(folder, 'app/bundled/route.js'), BUNDLED);
  build(folder, 'webpack');
  const server = await start(folder);
  try {
    const text = await (await fetch(`${server.url}/bundled`)).text();
    assert.match(text, /^NOT_LOADED: .*; add 'relampago' to serverExternalPackages in next\.config, or give init\(\)/);
  } finally {
    server.close();
  }
});

function build(folder, bundler) {
  try {
    execFileSync(hostProgram('next'), ['build', `--${bundler}`], { cwd: folder, env, stdio: 'pipe' });
  } catch (error) {
    throw new Error(`next build failed:\n${error.stdout}\n${error.stderr}`);
  }
}

/** Starts the server on a free port, which it prints. */
async function start(folder) {
  const server = spawn(hostProgram('next'), ['start', '-H', '127.0.0.1', '-p', '0'], { cwd: folder, env });
  process.once('exit', () => server.kill());
  let output = '';
  const url = await new Promise((resolve, reject) => {
    server.on('exit', () => reject(new Error(`next start ended:\n${output}`)));
    for (const stream of [server.stdout, server.stderr]) {
      stream.on('data', (text) => {
        output += text;
        const [found] = output.match(/http:\/\/127\.0\.0\.1:\d+/) ?? [];
        found && resolve(found);
      });
    }
  });
  return { url, close: () => server.kill() };
}
