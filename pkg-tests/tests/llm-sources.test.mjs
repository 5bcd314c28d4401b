// Loading of models from servers: ranges, broken connections, and the cache of a browser.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { ENGINES, launch } from '../support/browser.mjs';
import { fresh } from '../support/install.mjs';
import { SILENT, TELLING, modelServer, waiting } from '../support/model-server.mjs';
import { serve } from '../support/serve.mjs';
import { writeTinyModel } from '../support/tiny-model.mjs';
import { unbundled } from '../support/unbundled.mjs';

const PART = 65_536;

describe('sources of models', () => {
  let folder;
  let native;
  let file;
  let server;
  /** A server of another origin. */
  let other;
  let models;
  /** What the file's older version answers. */
  let olderText;
  before(async () => {
    folder = fresh('llm-sources');
    native = writeTinyModel(folder);
    file = readFileSync(join(folder, 'tiny.gguf'));
    const older = olderThan(file);
    models = modelServer(file, older);
    server = await serve(unbundled(folder, 'llm-sources', ['llm-sources.js']), { answer: models.answer, headers: withConnections });
    other = await serve(folder, { answer: models.answer });
    writeFileSync(join(folder, 'older.gguf'), older);
    const node = await inNode(folder, server.url);
    ({ text: olderText } = await node.visit(pathToFileURL(join(folder, 'older.gguf')).href));
    assert.notEqual(olderText, native.text);
  });
  after(() => {
    server?.close();
    other?.close();
  });

  const parts = () => Math.ceil(file.length / PART);
  /** The requests for a model: the first one asks for one byte. */
  const requested = (path) => models.requestsTo(path).length;
  const verify = (result, expected) => {
    const { last, ...others } = result;
    assert.deepEqual(others, { text: native.text, restarts: 0, ...expected });
    assert.deepEqual(last, { loaded: file.length, total: file.length });
  };
  const requireError = ({ error }, pattern) => assert.match(String(error), pattern);

  for (const host of ['node', 'chromium']) {
    describe(host, () => {
      let visit;
      let complaints;
      let close;
      before(async () => {
        ({ visit, complaints, close } = await (host === 'node' ? inNode(folder, server.url) : inPage(server.url)));
      });
      after(() => close?.());
      const path = (behaviour) => `/models/${behaviour}/${host}`;
      /** Without the cache every request is seen. */
      const load = (behaviour, options) => visit(path(behaviour), { cache: false, ...options });
      const fresh = { from: 'network', cached: false };

      test('ranges are fetched in parts', async () => {
        verify(await load('ranges'), fresh);
        const requests = models.requestsTo(path('ranges'));
        assert.equal(requests.length, 1 + parts());
        assert.equal(requests[0], 'bytes=0-0');
        assert.deepEqual(requests.slice(1).sort(), expectedRanges(file.length).sort());
      });

      test('three parts are fetched at a time', async () => {
        waiting.most = 0;
        verify(await load('slow'), fresh);
        assert.equal(waiting.most, 3);
      });

      test('servers without ranges send one stream', async () => {
        verify(await load('plain'), fresh);
        assert.equal(requested(path('plain')), 1);
      });

      test('the length may be unknown', async () => {
        const { last, ...result } = await load('chunked');
        assert.deepEqual(result, { text: native.text, restarts: 0, ...fresh });
        assert.equal(last.loaded, file.length);
      });

      test('a part goes on where its connection broke', async () => {
        verify(await load('breaking'), fresh);
        const second = models.requestsTo(path('breaking')).filter((range) => Number(/=(\d+)/.exec(range)[1]) % PART === 40_000);
        assert.ok(second.length >= parts() / 2, `${second.length} of ${parts()} parts went on`);
      });

      test('an error of the server that passes is no error', async () => {
        verify(await load('busy'), fresh);
      });

      test('a connection that falls silent is given up', async () => {
        verify(await load('silent'), fresh);
        const requests = models.requestsTo(path('silent'));
        assert.ok(requests.some((range) => Number(/=(\d+)/.exec(range)[1]) % PART === 1000), requests.join());
      });

      test('connections that always break are an error', async () => {
        requireError(await load('broken'), /^NETWORK: .*broken\/\w+: it broke off 3 times, at last at byte \d+ of 881376: /);
      });

      test('a stream that breaks is an error', async () => {
        requireError(await load('halved'), /^NETWORK: .*halved\/\w+: it broke off after \d+ bytes: /);
      });

      test('a stream that falls silent is an error', async () => {
        requireError(await load('mute'), /^NETWORK: .*mute\/\w+: it broke off after 1000 bytes: nothing arrived for 1 s$/);
      });

      test('a missing file is an error', async () => {
        requireError(await load('missing'), /^NETWORK: the model could not be loaded from http\S*: the server answers 404$/);
        assert.equal(requested(path('missing')), 1);
      });

      test('a file that goes missing in mid-download is an error', async () => {
        requireError(await load('lost'), /^NETWORK: .* the server answers 404 to a request for a range from byte \d+ of 881376$/);
      });

      test('a server that forgets ranges in mid-download is an error', async () => {
        requireError(await load('forgetful'), /^NETWORK: .* the server answers 200 to a request for a range from byte \d+ of 881376$/);
      });

      test('a file that is replaced in mid-download is loaded anew', async () => {
        verify(await load('replaced'), { ...fresh, restarts: 1 });
      });

      test('a file that changes all the time is an error', async () => {
        requireError(await load('changing'), /^NETWORK: .* it changed during the download: its version is "\d+" of 881376 bytes, but was "\d+" of 881376 bytes$/);
      });

      for (const name of Object.keys(TELLING)) {
        test(`a file that is replaced by one of the same length is loaded anew, told by its validators: ${name}`, async () => {
          verify(await load(`renewed-${name}`), { ...fresh, restarts: 1 });
        });
      }

      for (const name of Object.keys(SILENT)) {
        test(`no ranges are joined where versions look alike: ${name}`, async () => {
          const { last, ...result } = await load(`renewed-${name}`);
          assert.deepEqual(result, { text: olderText, restarts: 0, ...fresh });
          assert.deepEqual(models.requestsTo(path(`renewed-${name}`)), ['bytes=0-0', undefined]);
        });
      }

      test('a file that becomes shorter under the same ETag is loaded anew', async () => {
        verify(await load('shrinking'), { ...fresh, restarts: 1 });
      });

      test('ranges of compressed content are not read', async () => {
        const { last, ...result } = await load('compressing');
        assert.deepEqual(result, { text: native.text, restarts: 0, ...fresh });
      });

      test('compressed ranges in mid-download are an error', async () => {
        // Chromium gives up such an answer itself.
        requireError(await load('compressing-late'), /^NETWORK: /);
      });

      for (const behaviour of ['lengthless', 'shifted']) {
        test(`an answer that is not the range that was asked for is an error: ${behaviour}`, async () => {
          requireError(await load(behaviour), /^NETWORK: .* the server answers 206 to a request for a range from byte \d+ of 881376$/);
        });
      }

      test('redirects are followed', async () => {
        verify(await load('moved'), fresh);
      });

      test('a file larger than memory is an error', async () => {
        requireError(await load('endless'), /^OUT_OF_MEMORY: /);
      });

      test('loading can be aborted in mid-download', async () => {
        assert.equal((await load('stuck', { abortAfter: 100_000 })).error, 'ABORTED: aborted by the caller');
      });

      test('no server is an error', async () => {
        models.state.down = true;
        try {
          requireError(await load('ranges'), /^NETWORK: the model could not be loaded from http/);
        } finally {
          models.state.down = false;
        }
      });

      test('a source that is no URL is an error', async () => {
        requireError(await visit('http://'), /^INVALID_ARGUMENT: `source` is 'http:\/\/', but must be a URL$/);
      });

      test('no error is left unhandled', () => {
        assert.deepEqual(complaints, []);
      });
    });
  }

  for (const engine of ENGINES) {
    test(`the second load in ${engine}`, async () => {
      const { visit, close } = await inPage(server.url, engine);
      try {
        const path = `/models/ranges/second-${engine}`;
        const [first, second] = [await visit(path), await visit(path)];
        // WebKitGTK lets only workers write files.
        const cached = engine !== 'webkit';
        verify(first, { from: 'network', cached });
        verify(second, { from: cached ? 'cache' : 'network', cached });
      } finally {
        await close();
      }
    });
  }

  describe('the cache', () => {
    let browser;
    let visitors;
    before(async () => {
      browser = await launch();
    });
    after(() => browser?.close());
    /** A visitor's page; `again` opens another tab. */
    const open = async (context) => {
      visitors = context ?? (await browser.newContext());
      const page = await visitors.newPage();
      await page.goto(`${server.url}/llm-sources.html`);
      await page.waitForFunction(() => Boolean(globalThis.visit));
      const call = (method, ...args) => page.evaluate(([method, args]) => globalThis.LanguageModel[method](...args), [method, args]);
      return {
        page,
        visit: (source, options) => page.evaluate(([source, options]) => globalThis.visit(source, options), [source, options]),
        cached: () => call('cached'),
        evict: (url) => call('evict', url),
        again: () => open(page.context()),
        close: () => page.context().close(),
      };
    };
    const cacheTest = (name, behaviour, run) =>
      test(name, async () => {
        const visitor = await open();
        models.forget(`/models/${behaviour}/cache`);
        try {
          await run(visitor, `/models/${behaviour}/cache`);
        } finally {
          await visitor.close();
        }
      });
    const entry = (path, bytes) => ({ url: server.url + path, bytes, total: file.length, complete: bytes === file.length });
    const network = { from: 'network', cached: true };
    const cache = { from: 'cache', cached: true };

    for (const behaviour of ['ranges', 'plain', 'dated']) {
      cacheTest(`the second load reads the disk: ${behaviour}`, behaviour, async (visitor, path) => {
        verify(await visitor.visit(path), network);
        assert.deepEqual(await visitor.cached(), [entry(path, file.length)]);
        const before = requested(path);
        verify(await visitor.visit(path), cache);
        assert.equal(requested(path), before + 1, 'whether the copy is current');
        const tab = await visitor.again();
        verify(await tab.visit(path, { worker: false }), cache);
      });
    }

    cacheTest('a file of unknown length is cached', 'chunked', async (visitor, path) => {
      const { last, ...first } = await visitor.visit(path);
      assert.deepEqual(first, { text: native.text, restarts: 0, ...network });
      verify(await visitor.visit(path), cache);
    });

    cacheTest('`cache: false` neither writes nor reads', 'ranges', async (visitor, path) => {
      verify(await visitor.visit(path, { cache: false }), { from: 'network', cached: false });
      assert.deepEqual(await visitor.cached(), []);
      await visitor.visit(path);
      verify(await visitor.visit(path, { cache: false }), { from: 'network', cached: false });
    });

    cacheTest('a file without a version is not cached', 'unnamed', async (visitor, path) => {
      verify(await visitor.visit(path), { from: 'network', cached: false });
      assert.deepEqual(await visitor.cached(), []);
    });

    cacheTest('a file with a weak ETag is cached as a whole', 'weak', async (visitor, path) => {
      verify(await visitor.visit(path), network);
      const before = requested(path);
      verify(await visitor.visit(path), cache);
      assert.equal(requested(path), before + 2, 'a range, and all, of which nothing is read');
    });

    for (const name of Object.keys(TELLING)) {
      cacheTest(`parts of a copy whose file was replaced are not used, told by its validators: ${name}`, `renewed-${name}`, async (visitor, path) => {
        await visitor.visit(path, { abortAfter: 4 * PART - 1 });
        assert.ok((await visitor.cached())[0].bytes >= PART);
        assert.equal((await visitor.visit(path)).text, native.text);
      });
    }

    cacheTest('a copy is evicted', 'ranges', async (visitor, path) => {
      await visitor.visit(path);
      assert.equal(await visitor.evict(path), true);
      assert.equal(await visitor.evict(path), false);
      assert.deepEqual(await visitor.cached(), []);
      verify(await visitor.visit(path), network);
    });

    cacheTest('a copy of another version is replaced', 'replaced', async (visitor, path) => {
      verify(await visitor.visit(path), { ...network, restarts: 1 });
      verify(await visitor.visit(path), cache);
      models.forget(path);
      const { last, ...older } = await visitor.visit(path);
      assert.deepEqual(older, { text: native.text, restarts: 1, ...network });
      assert.deepEqual(await visitor.cached(), [entry(path, file.length)]);
    });

    cacheTest('without a network the copy is used', 'ranges', async (visitor, path) => {
      await visitor.visit(path);
      models.state.down = true;
      try {
        verify(await visitor.visit(path), cache);
        await visitor.evict(path);
        requireError(await visitor.visit(path), /^NETWORK: /);
      } finally {
        models.state.down = false;
      }
    });

    cacheTest('with a server out of order the copy is used', 'failing', async (visitor, path) => {
      await visitor.visit(path);
      models.state.freed.add(path);
      verify(await visitor.visit(path), cache);
      requireError(await visitor.visit(path, { cache: false }), /^NETWORK: .* the server answers 503$/);
    });

    cacheTest('ranges of another site', 'shared', async (visitor, path) => {
      verify(await visitor.visit(other.url + path), network);
      assert.equal(requested(path), 1 + parts());
      verify(await visitor.visit(other.url + path), cache);
    });

    cacheTest('a stream of another site, which hides its version', 'hiding', async (visitor, path) => {
      verify(await visitor.visit(other.url + path), { from: 'network', cached: false });
      assert.deepEqual(models.requestsTo(path), ['bytes=0-0', undefined]);
    });

    cacheTest('an aborted download goes on at the next load', 'stuck', async (visitor, path) => {
      const { error } = await visitor.visit(path, { abortAfter: 4 * PART - 1 });
      assert.equal(error, 'ABORTED: aborted by the caller');
      const [{ bytes, complete }] = await visitor.cached();
      assert.ok(bytes >= 2 * PART && !complete, `${bytes} bytes are kept`);
      models.state.freed.add(path);
      const before = requested(path);
      verify(await visitor.visit(path), network);
      assert.equal(requested(path) - before, 1 + parts() - bytes / PART);
      verify(await visitor.visit(path), cache);
    });

    cacheTest('a broken download goes on at the next load', 'lost', async (visitor, path) => {
      requireError(await visitor.visit(path), /^NETWORK: /);
      const [{ bytes }] = await visitor.cached();
      assert.ok(bytes >= PART, `${bytes} bytes are kept`);
      models.forget(path);
      requireError(await visitor.visit(path), /^NETWORK: /);
      assert.ok((await visitor.cached())[0].bytes > bytes);
    });

    cacheTest('a closed tab leaves its parts and no lock', 'stuck', async (visitor, path) => {
      models.state.freed.delete(path);
      const tab = await visitor.again();
      tab.visit(path).catch(() => {});
      await until(async () => (await visitor.cached())[0]?.bytes >= 2 * PART);
      await tab.page.close();
      const [{ bytes }] = await visitor.cached();
      models.state.freed.add(path);
      const before = requested(path);
      verify(await visitor.visit(path), network);
      assert.ok(requested(path) - before <= 1 + parts() - bytes / PART);
    });

    cacheTest('two tabs that load at once download once', 'ranges', async (visitor, path) => {
      const tab = await visitor.again();
      const results = await Promise.all([visitor.visit(path), tab.visit(path), visitor.visit(path)]);
      results.forEach(({ text }) => assert.equal(text, native.text));
      assert.deepEqual(results.map(({ from }) => from).sort(), ['cache', 'cache', 'network']);
      assert.equal(requested(path), 3 + parts());
    });

    cacheTest('a tab that waits for another one can be aborted, and `evict` waits', 'stuck', async (visitor, path) => {
      models.state.freed.delete(path);
      const tab = await visitor.again();
      const first = visitor.page.evaluate((path) => {
        globalThis.controller = new AbortController();
        return globalThis.LanguageModel.load(path, { signal: globalThis.controller.signal }).catch(({ code }) => code);
      }, path);
      await until(() => requested(path) > 5);
      const waiting = await tab.page.evaluate(async (path) => {
        const signal = AbortSignal.timeout(300);
        return globalThis.LanguageModel.load(path, { signal }).catch(({ code }) => code);
      }, path);
      assert.equal(waiting, 'ABORTED');
      const evicted = tab.evict(path);
      await visitor.page.evaluate(() => globalThis.controller.abort());
      assert.equal(await first, 'ABORTED');
      assert.equal(await evicted, true);
      assert.deepEqual(await tab.cached(), []);
    });

    cacheTest('a full quota leaves the model without a copy', 'ranges', async (visitor, path) => {
      await limit(visitor.page, 300_000);
      verify(await visitor.visit(path), { from: 'network', cached: false });
      assert.deepEqual(await visitor.cached(), []);
    });

    cacheTest('a quota that fills up in mid-download leaves nothing behind', 'ranges', async (visitor, path) => {
      await limit(visitor.page, 300_000);
      await visitor.page.evaluate(() => {
        navigator.storage.estimate = async () => ({ quota: 1e9, usage: 0 });
      });
      verify(await visitor.visit(path), { from: 'network', cached: false });
      assert.deepEqual(await visitor.cached(), []);
    });

    cacheTest('browsers without the store load without it', 'ranges', async (visitor, path) => {
      await visitor.page.evaluate(() => {
        delete FileSystemFileHandle.prototype.createWritable;
      });
      verify(await visitor.visit(path), { from: 'network', cached: false });
      assert.deepEqual(await visitor.cached(), []);
      assert.equal(await visitor.evict(path), false);
    });

    cacheTest('a damaged copy is downloaded again', 'ranges', async (visitor, path) => {
      await visitor.visit(path);
      await visitor.page.evaluate(damage);
      verify(await visitor.visit(path), network);
      verify(await visitor.visit(path), cache);
    });
  });
});

/** A model of the same length with other weights: signs and bits in the last three quarters of the file differ. */
const olderThan = (file) => file.map((byte, i) => (i > file.length / 4 && i % 4 === 3 ? byte ^ 0x80 : byte));

async function until(holds) {
  for (let tries = 0; tries < 200 && !(await holds()); tries++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Lets pages connect to other sites. */
const withConnections = (headers) => {
  const name = 'content-security-policy';
  return { ...headers, [name]: headers[name].replace("connect-src 'self'", 'connect-src *') };
};

const expectedRanges = (size) =>
  Array.from({ length: Math.ceil(size / PART) }, (_, i) => `bytes=${i * PART}-${Math.min(size, (i + 1) * PART) - 1}`);

async function inNode(folder, url) {
  // The internal settings are those of the script that `node.js` imports.
  const at = (file) => import(pathToFileURL(join(folder, file)));
  const { hurry, visit } = await at('llm-sources.js');
  hurry(await at('node_modules/relampago/llm/index.js'));
  const llm = await at('node_modules/relampago/llm/node.js');
  // Node itself ends at an unhandled error.
  return { visit: (source, options) => visit(llm, source.startsWith('/') ? url + source : source, options), complaints: [] };
}

async function inPage(url, engine) {
  const browser = await launch(engine);
  const close = () => browser.close();
  try {
    const page = await browser.newPage();
    const complaints = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    await page.goto(`${url}/llm-sources.html`);
    await page.waitForFunction(() => Boolean(globalThis.visit));
    const visit = (source, options = {}) => page.evaluate(([source, options]) => globalThis.visit(source, options), [source, options]);
    return { visit, complaints, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Limits what the page's origin may store. */
async function limit(page, quotaSize) {
  const session = await page.context().newCDPSession(page);
  await session.send('Storage.overrideQuotaForOrigin', { origin: new URL(page.url()).origin, quotaSize });
}

/** Cuts a part of the one model short, in the page. */
async function damage() {
  const origin = await navigator.storage.getDirectory();
  const models = await origin.getDirectoryHandle('relampago-models');
  for await (const model of models.values()) {
    const writable = await (await model.getFileHandle('3')).createWritable();
    await writable.write(new Uint8Array(10));
    await writable.close();
  }
}
