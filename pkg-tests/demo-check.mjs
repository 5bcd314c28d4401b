// The site's pages in every engine. The page of filters, on SIMD and where the engine has a GPU on WebGPU: every value of
// every filter, and every pixel shown, against a convolution in doubles that shares no code with the page.
// Then the page of conformance, on which every case must hold; the first page and the playground; and the samples of the
// guides, which must print what they state.
// `node demo-check.mjs URL` prints one line of JSON and fails on any difference or complaint.

import { deflateSync } from 'node:zlib';
import { ENGINES, TITLES, launch } from './support/browser.mjs';
import { ran } from './support/ran.mjs';
import { runGuides } from './support/run-buttons.mjs';
import { relay } from './support/serve.mjs';
import { verifyLanding, verifyOnPhone, verifyPlayground } from './support/site-pages.mjs';

const [url] = process.argv.slice(2);
const BACKENDS = { gpu: 'webgpu', simd: 'simd' };
/** The largest error for the sum of the terms' magnitudes: 32 units in a float's last place. */
const TOLERANCE = 32 * 2 ** -23;
/** What the page says that it applies. */
const KERNELS = {
  identity: [0, 0, 0, 0, 1, 0, 0, 0, 0],
  blur: gaussian(9, 2),
  motion: Array.from({ length: 81 }, (_, i) => (i % 8 === 0 && i > 0 && i < 80 ? 1 / 9 : 0)),
  sharpen: [0, -1, 0, -1, 5, -1, 0, -1, 0],
  edges: [-1, -1, -1, -1, 8, -1, -1, -1, -1],
  sobel: [-1, 0, 1, -2, 0, 2, -1, 0, 1],
  emboss: [-2, -1, 0, -1, 1, 1, 0, 1, 2],
  custom: [-1, 0, -1, 0, -1, 0, 0, 0, 0, 0, -1, 0, 9, 0, -1, 0, 0, 0, 0, 0, -1, 0, -1, 0, -1],
};

const report = { ok: true, backends: [] };
for (const engine of ENGINES) {
  await inEngine(engine).catch((error) => {
    report.ok = false;
    report.errors = [...(report.errors ?? []), `${engine}: ${error.message}`];
  });
}
console.log(JSON.stringify(report));
process.exitCode = report.ok ? 0 : 1;

async function inEngine(engine) {
  // Complaints reach the check by way of the relay where they do not by a protocol.
  const server = await relay(url);
  const browser = await launch(engine);
  try {
    const hasGpu = engine === 'chromium' || (await hasAdapter(browser, server.url));
    for (const backend of hasGpu ? ['gpu', 'simd'] : ['simd']) {
      const result = await onBackend(browser, server.url, backend, hasGpu);
      report.backends.push({ engine, ...result });
      ran(TITLES[engine], 'demo', { version: browser.version(), ...result });
    }
    const cases = await conformance(browser, server.url, hasGpu);
    report.backends.push({ engine, ...cases });
    ran(TITLES[engine], 'conformance', { version: browser.version(), ...cases });
    const pages = await withoutComplaints(browser, async (page) => ({
      pixels: await verifyLanding(page, server.url),
      examples: await verifyPlayground(page, server.url),
      samples: await runGuides(page, server.url),
    }));
    report.backends.push({ engine, ...pages });
    ran(TITLES[engine], 'guides', { version: browser.version() });
    if (engine === 'chromium') {
      await verifyOnPhone(browser, server.url);
    }
  } finally {
    await browser.close();
    server.close();
  }
}

/** Whether the page can have a GPU; where not, it must say so and use SIMD. */
async function hasAdapter(browser, url) {
  const page = await browser.newPage();
  await page.goto(`${url}/filters.html?backend=gpu`);
  await page.evaluate(() => globalThis.relampagoDemo.ready);
  const [adapter, backend, notice] = await page.evaluate(async () => [
    Boolean(await navigator.gpu?.requestAdapter()),
    globalThis.relampagoDemo.info.backend,
    document.querySelector('#notice').textContent,
  ]);
  ensure(adapter || (backend === 'simd' && /SIMD instead/.test(notice)), `without a GPU the page runs on ${backend}: ${notice}`);
  await page.close();
  return adapter;
}

async function onBackend(browser, url, backend, hasGpu) {
  const page = await browser.newPage();
  const complaints = listen(page);
  // Other browsers' devices stay their own.
  await page.addInitScript?.(keepDevices);
  await page.goto(new URL(`filters.html?backend=${backend}`, url).href);
  await page.evaluate(() => globalThis.relampagoDemo.ready);
  const info = await page.evaluate(() => ({ ...globalThis.relampagoDemo.info }));
  const wrong = info.backend !== BACKENDS[backend];
  ensure(!wrong, `${backend} was asked for, but the page runs on ${info.backend}: ${complaints}`);
  await verifyChart(page, hasGpu);
  const results = await verifyFilters(page);
  results.push(await verifyEditor(page));
  results.push(await verifyStrength(page));
  results.push(await verifyOwnPicture(page));
  results.push(await verifyNewest(page, backend));
  ensure(complaints.length === 0, `the page complained on ${backend}: ${complaints.join('; ')}`);
  await page.close();
  return {
    backend: info.backend,
    adapter: info.adapter ?? null,
    instructionSet: info.instructionSet,
    filters: results.length,
    pixels: total(results.map(({ pixels }) => pixels)),
    milliseconds: round(median(results.map(({ milliseconds }) => milliseconds))),
    largestError: Math.max(...results.map(({ largestError }) => largestError)),
    largestErrorOfTolerance: round(Math.max(...results.map(({ share }) => share))),
  };
}

/** Every case of the page of conformance holds, on the GPU if there is one and on SIMD; the button copies the report. */
async function conformance(browser, url, hasGpu) {
  const page = await browser.newPage();
  const complaints = listen(page);
  await page.goto(`${url}/conformance.html`);
  const devices = await page.evaluate(async () => {
    const { devices } = await globalThis.relampagoConformance.ready;
    return devices.map(({ name, cases, failures, error, speed }) => [name, cases, failures, error?.code, speed.filter(({ milliseconds }) => milliseconds > 0).length]);
  });
  const shown = await page.locator('#operations tbody tr').allTextContents();
  ensure(await page.evaluate(() => !document.querySelector('#copy').disabled), 'the report cannot be copied');
  for (const [name, cases, failures, code, timed] of devices.slice(hasGpu ? 0 : 1)) {
    ensure(!code && failures.length === 0, `${name}: ${code ?? JSON.stringify(failures)}`);
    ensure(cases > 400 && timed === 4, `${name} ran ${cases} cases and ${timed} timings`);
  }
  ensure(shown.length >= 72, `${shown.length} operations are shown`);
  ensure(hasGpu || devices[0][3] === 'NO_GPU', `without a GPU the page says ${devices[0]}`);
  ensure(complaints.length === 0, `the page of conformance complained: ${complaints.join('; ')}`);
  await page.close();
  return { cases: devices[1][1], operations: shown.length };
}

/** What `check` returns of a new page, which must not complain. */
async function withoutComplaints(browser, check) {
  const page = await browser.newPage();
  const complaints = listen(page);
  const result = await check(page);
  ensure(complaints.length === 0, `a page complained: ${complaints.join('; ')}`);
  await page.close();
  return result;
}

/** Violations of the content security policy reach the console as errors. */
function listen(page) {
  const complaints = [];
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText;
    // The next page cancels what the one before still loads, such as its icon.
    reason === 'net::ERR_ABORTED' || complaints.push(`${request.url()}: ${reason}`);
  });
  return complaints;
}

/** Three contenders, each with a time, but for a GPU that is missing; SwiftShader counts as one that was asked for. */
async function verifyChart(page, hasGpu) {
  await page.evaluate(() => globalThis.relampagoDemo.measured);
  const shown = await page.locator('#chart .bar-value').allTextContents();
  const times = hasGpu ? shown : shown.slice(1);
  const right = shown.length === 3 && times.every((text) => /^[\d.]+ ms$/.test(text)) && (hasGpu || shown[0] === 'not here');
  ensure(right, `the chart shows ${shown}`);
}

async function verifyFilters(page) {
  const filters = await page.evaluate(() =>
    Object.entries(globalThis.relampagoDemo.filters).map(([name, { kernel }]) => [name, Array.from(kernel)]),
  );
  const names = filters.map(([name]) => name);
  ensure(String(names) === String(Object.keys(KERNELS)), `the page has the filters ${names}`);
  const results = [];
  for (const [name, kernel] of filters) {
    const expected = KERNELS[name];
    const same = kernel.length === expected.length && kernel.every((weight, i) => weight === Math.fround(expected[i]) || Math.abs(weight - expected[i]) < 1e-8);
    ensure(same, `the kernel of ${name} is ${kernel}`);
    results.push(await verifyApplied(page, name));
  }
  return results;
}

/** Weights typed into the grid, one after the other, with the keyboard. */
async function verifyEditor(page) {
  const weights = [0.5, -1.25, 0, 2, 0.125, 1, -3, 0.1, 1];
  await page.locator('#size input[value="3"]').check();
  for (const [i, weight] of weights.entries()) {
    await page.locator('#grid input').nth(i).focus();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type(String(weight));
  }
  const kernel = await page.evaluate(() => Array.from(globalThis.relampagoDemo.filters.custom.kernel));
  ensure(String(kernel) === String(weights.map(Math.fround)), `what was typed became ${kernel}`);
  await page.locator('#normalise').click();
  const sum = await page.evaluate(() => globalThis.relampagoDemo.filters.custom.kernel.reduce((a, b) => a + b));
  ensure(Math.abs(sum - 1) < 1e-6, `normalised weights sum to ${sum}`);
  return verifyApplied(page, 'custom');
}

/** Half of the filter's effect, and how the page says that its batch runs. */
async function verifyStrength(page) {
  const planned = () => page.locator('#plan .kernel .chips:not(.writes)').allTextContents();
  const whole = await planned();
  await page.locator('#strength').fill('50');
  const result = await verifyApplied(page, 'motion');
  const plans = [whole, await planned()].map(String);
  const expected = ['convolve2d', 'convolve2dsubscalevec add'].map((kernel) =>
    ['red', 'green', 'blue'].map((colour) => [`${colour}weights`, kernel]));
  ensure(String(plans) === String(expected), `the plans are drawn as ${plans}`);
  await page.locator('#strength').fill('100');
  return result;
}

/** A picture of odd sizes, chosen as a visitor does. */
async function verifyOwnPicture(page) {
  const [width, height] = [131, 67];
  const buffer = png(width, height, (x, y) => [(x * 7 + y) % 256, (x * y) % 256, (255 * y) / height]);
  await page.locator('#file').setInputFiles({ name: 'own.png', mimeType: 'image/png', buffer });
  await page.waitForFunction((size) => globalThis.relampagoDemo.source().width === size, width);
  return verifyApplied(page, 'sharpen');
}

/** The page's GPU devices are kept where they can be lost, and adapters take their time. */
function keepDevices() {
  const { GPU, GPUAdapter } = globalThis;
  if (!GPU) {
    return;
  }
  globalThis.devices = [];
  const { requestDevice } = GPUAdapter.prototype;
  GPUAdapter.prototype.requestDevice = async function (...values) {
    const device = await requestDevice.apply(this, values);
    globalThis.devices.push(device);
    return device;
  };
  const { requestAdapter } = GPU.prototype;
  GPU.prototype.requestAdapter = async function (...values) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    return requestAdapter.apply(this, values);
  };
}

/** The last picture and the last back-end count, whatever takes longest; a lost GPU is found again. */
async function verifyNewest(page, backend) {
  await page.evaluate(async () => {
    const picture = async (width, height) => {
      const canvas = new OffscreenCanvas(width, height);
      canvas.getContext('2d').fillRect(0, 0, width, 1);
      return new File([await canvas.convertToBlob()], 'own.png', { type: 'image/png' });
    };
    for (const file of [await picture(4000, 3000), await picture(40, 30)]) {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(file);
      document.dispatchEvent(new DragEvent('drop', { dataTransfer, cancelable: true }));
    }
  });
  await page.waitForFunction(() => globalThis.relampagoDemo.source().width === 40);
  await page.evaluate(() => globalThis.devices?.forEach((device) => device.destroy()));
  await verifyApplied(page, 'blur');
  await page.evaluate((kept) => {
    for (const value of ['auto', kept]) {
      const choice = document.querySelector(`#backend [value=${value}]`);
      choice.checked = true;
      choice.dispatchEvent(new Event('change', { bubbles: true }));
    }
  }, backend);
  await page.waitForTimeout(1000);
  const result = await verifyApplied(page, 'sharpen');
  const shown = await page.evaluate(() => [
    globalThis.relampagoDemo.source().width, document.querySelector('#fact-reason').textContent,
    globalThis.relampagoDemo.info.backend, document.querySelector('#notice').hidden,
  ]);
  const right = shown[0] === 40 && /asked for/.test(shown[1]) && shown[2] === BACKENDS[backend] && shown[3];
  ensure(right, `after changes of mind the page shows ${shown}`);
  return result;
}

async function verifyApplied(page, name) {
  const { kernel, size, strength, width, height, milliseconds, ...planes } = await applied(page, name);
  const [source, shown, channels] = [planes.source, planes.shown, planes.channels].map(decode);
  const pixels = width * height;
  const [before, after] = [new Uint8Array(source), new Uint8Array(shown)];
  const results = new Float32Array(channels);
  ensure(results.length === 3 * pixels, `${name} has ${results.length} values`);
  let [largestError, share] = [0, 0];
  for (let channel = 0; channel < 3; channel++) {
    const input = Float64Array.from({ length: pixels }, (_, i) => before[4 * i + channel]);
    const filtered = convolve(input, width, height, kernel, size);
    const sums = input.map((value, i) => value + strength * (filtered.sums[i] - value));
    const magnitudes = input.map((value, i) => (strength < 1 ? value : 0) + filtered.magnitudes[i]);
    for (let i = 0; i < pixels; i++) {
      const error = Math.abs(results[channel * pixels + i] - sums[i]);
      const allowed = TOLERANCE * magnitudes[i];
      const where = () => `${name}, channel ${channel}, pixel ${i % width}, ${Math.floor(i / width)}`;
      ensure(error <= allowed, () => `${where()}: ${results[channel * pixels + i]}, not ${sums[i]}`);
      ensure(isShown(after[4 * i + channel], sums[i], allowed), () => `${where()}: shown as ${after[4 * i + channel]}, not ${sums[i]}`);
      largestError = Math.max(largestError, error);
      share = Math.max(share, allowed > 0 ? error / allowed : 0);
    }
  }
  for (let i = 3; i < after.length; i += 4) {
    ensure(after[i] === before[i], `${name} changed alpha`);
  }
  return { pixels, milliseconds, largestError, share };
}

/** Rounded and clamped; either neighbour where the error reaches the middle between two. */
function isShown(level, value, error) {
  const clamped = Math.min(Math.max(value, 0), 255);
  return Math.abs(level - clamped) <= 0.5 + error;
}

/** Applies a filter and reads both canvases; the pixels come from there, not from the page's code. */
async function applied(page, name) {
  return page.evaluate(async (name) => {
    const base64 = (buffer) => {
      const bytes = new Uint8Array(buffer);
      let text = '';
      for (let i = 0; i < bytes.length; i += 0x8000) {
        text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
      }
      return btoa(text);
    };
    const pixels = (id) => {
      const canvas = document.getElementById(id);
      return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    };
    const { channels, milliseconds, filter, strength } = await globalThis.relampagoDemo.apply(name);
    const { width, height, data } = pixels('before');
    const values = await new Blob(channels).arrayBuffer();
    return {
      kernel: Array.from(filter.kernel),
      size: filter.size,
      strength,
      width,
      height,
      milliseconds,
      source: base64(data.buffer),
      shown: base64(pixels('after').data.buffer),
      channels: base64(values),
    };
  }, name);
}

function decode(base64) {
  const { buffer, byteOffset, length } = Buffer.from(base64, 'base64');
  return buffer.slice(byteOffset, byteOffset + length);
}

/** Sums of products in doubles, zeros beyond the edges, with the sums of the terms' magnitudes. */
function convolve(input, width, height, kernel, size) {
  const reach = Math.floor(size / 2);
  const sums = new Float64Array(input.length);
  const magnitudes = new Float64Array(input.length);
  kernel.forEach((weight, at) => {
    const down = Math.floor(at / size) - reach;
    const right = (at % size) - reach;
    for (let y = Math.max(0, -down); y < Math.min(height, height - down); y++) {
      for (let x = Math.max(0, -right); x < Math.min(width, width - right); x++) {
        const term = weight * input[(y + down) * width + x + right];
        sums[y * width + x] += term;
        magnitudes[y * width + x] += Math.abs(term);
      }
    }
  });
  return { sums, magnitudes };
}

function gaussian(size, deviation) {
  const middle = Math.floor(size / 2);
  const bell = (i) => Math.exp(-((Math.floor(i / size) - middle) ** 2 + ((i % size) - middle) ** 2) / (2 * deviation ** 2));
  const weights = Array.from({ length: size * size }, (_, i) => bell(i));
  const sum = total(weights);
  return weights.map((weight) => weight / sum);
}

/** An RGB picture in the PNG format. */
function png(width, height, colour) {
  const rows = Array.from({ length: height }, (_, y) => [0, ...Array.from({ length: width }, (_, x) => colour(x, y)).flat()]);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const chunks = [['IHDR', header], ['IDAT', deflateSync(Buffer.from(rows.flat()))], ['IEND', Buffer.alloc(0)]];
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), ...chunks.map(([type, body]) => chunk(type, body))]);
}

function chunk(type, body) {
  const data = Buffer.concat([Buffer.from(type), body]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(body.length);
  check.writeUInt32BE(crc32(data));
  return Buffer.concat([length, data, check]);
}

function crc32(data) {
  let crc = ~0;
  for (const byte of data) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) {
      crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
  }
  return ~crc >>> 0;
}

function ensure(condition, complaint) {
  if (!condition) {
    throw new Error(typeof complaint === 'function' ? complaint() : complaint);
  }
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function total(values) {
  return values.reduce((sum, value) => sum + value, 0);
}

function round(value) {
  return Number(value.toPrecision(3));
}
