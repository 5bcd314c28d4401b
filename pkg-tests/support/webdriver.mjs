// Firefox and WebKit by WebDriver, with the part of Playwright's interface that the tests use.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { requestsTo } from './serve.mjs';

const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf';
// Long enough for a busy machine: a page that computes in its first script took more than half a minute.
const PATIENCE = 120_000;
// Without a listener they end the process without its event 'exit', which ends the drivers.
const SIGNALS = ['SIGINT', 'SIGTERM'];
const TIMEOUTS = { script: 300_000, pageLoad: PATIENCE, implicit: 0 };

/** Starts the command line `driver`, which lacks the port, and a browser of these capabilities. */
export async function open(options) {
  return new Session(options, await start(options));
}

/** The session's address, the browser's version, and a function that ends the driver and its browser. */
async function start({ driver, env, capabilities }) {
  const port = await freePort();
  const [program, ...args] = driver;
  // A group of its own, so that what the driver starts ends with it.
  const child = spawn(program, [...args, `--port=${port}`], { env: { ...process.env, ...env }, detached: true, stdio: 'ignore' });
  const failed = new Promise((_, reject) => child.once('error', reject));
  const stop = (_, number) => process.exit(128 + number);
  const end = () => {
    process.off('exit', end);
    SIGNALS.forEach((signal) => process.off(signal, stop));
    child.pid && endGroup(child.pid);
  };
  process.once('exit', end);
  SIGNALS.forEach((signal) => process.on(signal, stop));
  try {
    const base = `http://127.0.0.1:${port}`;
    await Promise.race([ready(base), failed]);
    const { sessionId, capabilities: got } = await command('POST', `${base}/session`, { capabilities: { alwaysMatch: capabilities } });
    const url = `${base}/session/${sessionId}`;
    await command('POST', `${url}/timeouts`, TIMEOUTS);
    return { url, version: got.browserVersion, end };
  } catch (error) {
    end();
    throw new Error(`${program} starts no browser: ${error.message}`, { cause: error });
  }
}

async function ready(base) {
  for (const deadline = Date.now() + PATIENCE; Date.now() < deadline; await wait(50)) {
    const answer = await fetch(`${base}/status`).catch(() => undefined);
    if (answer?.ok) {
      return;
    }
  }
  throw new Error('it does not answer');
}

async function command(method, url, body) {
  const response = await fetch(url, { method, headers: { 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) });
  const { value } = await response.json();
  if (!response.ok) {
    throw Object.assign(new Error(`${value.error}: ${value.message}`), { code: value.error });
  }
  return value;
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function endGroup(pid) {
  try {
    process.kill(-pid);
  } catch {} // It has ended.
}

class Session {
  #options;
  #started;
  #wasReplaced = false;

  constructor(options, started) {
    this.#options = options;
    this.#started = started;
  }

  version() {
    return this.#started.version;
  }

  send(method, path, body) {
    return command(method, `${this.#started.url}/${path}`, body);
  }

  /** Shows `url` after `begin`. A browser that hangs, as WebKit does now and then, is replaced once in a session. */
  async load(url, begin = () => {}) {
    begin();
    try {
      await this.send('POST', 'url', { url });
    } catch (error) {
      if (error.code !== 'timeout' || this.#wasReplaced) {
        throw error;
      }
      this.#wasReplaced = true;
      console.error(`${this.#options.driver.join(' ')} did not load ${url} in ${PATIENCE / 1000} s, and is started again`);
      this.#started.end();
      this.#started = await start(this.#options);
      begin();
      await this.send('POST', 'url', { url });
    }
  }

  /** The session's one window, which shows one page after the other. */
  async newPage() {
    return new Page(this);
  }

  async close() {
    await command('DELETE', this.#started.url).catch(() => {});
    this.#started.end();
  }
}

class Page {
  #session;
  #listeners = { console: [], request: [] };
  #origin;
  #requests = 0;

  constructor(session) {
    this.#session = session;
  }

  /** Other events than complaints on the console and requests never happen here. */
  on(event, listener) {
    this.#listeners[event]?.push(listener);
  }

  async goto(url) {
    this.#origin = new URL(url).origin;
    await this.#session.load(url, () => {
      this.#requests = requestsTo(this.#origin).length;
    });
    // WebKit's driver may take the end of the page before for the end of this one's load.
    await this.waitForFunction((url) => location.href === url && document.readyState === 'complete', new URL(url).href);
  }

  /** What `work`, called on the page, returns or promises, as JSON has it. */
  async evaluate(work, argument) {
    const script = `
      const [argument, done] = arguments;
      const complaints = () => window.complaints?.splice(0) ?? [];
      (async () => (${work})(argument))().then(
        (value) => done(JSON.stringify({ value, complaints: complaints() })),
        (error) => done(JSON.stringify({ failure: error.name + ': ' + error.message, complaints: complaints() })),
      );`;
    const args = [argument ?? null];
    const text = await this.#session.send('POST', 'execute/async', { script, args });
    const { value, failure, complaints } = JSON.parse(text);
    this.#emit('console', complaints.map((complaint) => ({ type: () => 'error', text: () => complaint })));
    const requests = requestsTo(this.#origin);
    this.#emit('request', requests.slice(this.#requests).map((path) => ({ url: () => this.#origin + path })));
    this.#requests = requests.length;
    if (failure !== undefined) {
      throw new Error(failure);
    }
    return value;
  }

  #emit(event, all) {
    all.forEach((one) => this.#listeners[event].forEach((listener) => listener(one)));
  }

  async waitForFunction(work, argument) {
    for (const deadline = Date.now() + PATIENCE; !(await this.evaluate(work, argument)); await wait(50)) {
      if (Date.now() > deadline) {
        throw new Error(`this does not come true: ${work}`);
      }
    }
  }

  waitForTimeout(milliseconds) {
    return wait(milliseconds);
  }

  locator(selector) {
    return new Locator(this, this.#session, selector);
  }

  keyboard = {
    press: (keys) => this.#session.send('POST', 'actions', keyActions(keys.split('+').map((key) => KEYS[key] ?? key))),
    type: async (text) => {
      for (const key of text) {
        await this.#session.send('POST', 'actions', keyActions([key]));
      }
    },
  };

  /** What the page still does ends. */
  async close() {
    await this.#session.load('about:blank');
  }
}

const KEYS = { ControlOrMeta: '\uE009', A: 'a', Tab: '\uE004', Enter: '\uE007', ArrowRight: '\uE014' };

/** Keys that are held together, and released in the opposite order. */
function keyActions(keys) {
  const down = keys.map((value) => ({ type: 'keyDown', value }));
  const up = keys.toReversed().map((value) => ({ type: 'keyUp', value }));
  return { actions: [{ type: 'key', id: 'keyboard', actions: [...down, ...up] }] };
}

class Locator {
  #page;
  #session;
  #selector;
  #place;

  constructor(page, session, selector, place = 0) {
    this.#page = page;
    this.#session = session;
    this.#selector = selector;
    this.#place = place;
  }

  nth(place) {
    return new Locator(this.#page, this.#session, this.#selector, place);
  }

  allTextContents() {
    return this.#page.evaluate((selector) => Array.from(document.querySelectorAll(selector), (node) => node.textContent), this.#selector);
  }

  /** Calls `work` with the element and `argument`. */
  #onElement(work, argument) {
    const found = `document.querySelectorAll(${JSON.stringify(this.#selector)})[${this.#place}]`;
    return this.#page.evaluate(`(argument) => (${work})(${found}, argument)`, argument);
  }

  focus() {
    return this.#onElement((element) => element.focus());
  }

  click() {
    return this.#onElement((element) => element.click());
  }

  async check() {
    await this.#onElement((element) => element.checked || element.click());
  }

  fill(text) {
    return this.#onElement((element, text) => {
      element.value = text;
      element.dispatchEvent(new Event('input', { bubbles: true }));
      element.dispatchEvent(new Event('change', { bubbles: true }));
    }, text);
  }

  /** As a visitor chooses a file, which lies on the disk for as long as the page may read it. */
  async setInputFiles({ name, buffer }) {
    const folder = mkdtempSync(join(tmpdir(), 'relampago-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, name);
    writeFileSync(path, buffer);
    const element = await this.#session.send('POST', 'element', { using: 'css selector', value: this.#selector });
    await this.#session.send('POST', `element/${element[ELEMENT]}/value`, { text: path });
  }
}
