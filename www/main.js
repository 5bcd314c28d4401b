// Connects the page: what the visitor does, what relampago computes, what is shown.
//
// For checks and for the curious, `window.relampagoDemo` offers
//   ready          a promise of the first filtered picture
//   filters        name → { label, size, kernel }: what the page applies; 'custom' is the editor's
//   source()       { width, height, channels: [red, green, blue, alpha] } from 0 to 255
//   apply(name)    chooses a filter as a click does, and promises
//                  { channels (before clamping), milliseconds, filter, strength } once it is on the canvas
//   measured       a promise of the rows of the first chart
//   info           the device's `info`; undefined until there is one

import { kernelEditor } from './editor.js';
import { INPUTS, applyFilter, applyOn, deviceFor, planOf, tooSmallForGpu } from './engine.js';
import { filters } from './filters.js';
import { gallery } from './gallery.js';
import { compare } from './compare.js';
import { drawChart } from './chart.js';
import { drawPlan, summary } from './plan.js';
import { decode, planes, show, thumbnail, toPixels } from './image.js';
import { measure } from './timing.js';
import { explain, inMilliseconds, reasonFor } from './words.js';

const BACKENDS = ['auto', 'gpu', 'simd'];
const PHOTOGRAPH = new URL('astronaut.jpg', import.meta.url);
/** How long a visitor has to leave the page alone before it is timed. */
const IDLE_MS = 500;

const at = (id) => document.getElementById(id);
const asked = new URLSearchParams(location.search).get('backend');

const state = {
  backend: BACKENDS.includes(asked) ? asked : 'auto',
  device: undefined,
  /** Why that is not the device asked for. */
  lack: '',
  name: 'edges',
  strength: 1,
  picture: undefined,
  small: undefined,
};

const choices = gallery(at('gallery'), (name) => guard(() => apply(name)));
const editor = kernelEditor(
  { grid: at('grid'), sizes: at('size'), sum: at('sum'), hint: at('kernel-hint'), normalise: at('normalise') },
  (filter) => {
    filters.custom = filter;
    guard(async () => {
      await apply('custom');
      await illustrate(['custom']);
    });
  },
);
compare(at('stage'), at('split'));

// Filters ------------------------------------------------------------------------------------

/** The newest request; an older one that ends later is not shown. */
let newest = 0;

async function apply(name) {
  const turn = ++newest;
  state.name = name;
  choices.select(name);
  const filter = filters[name];
  editor.display(filter);
  stopMeasuring();
  if (!state.picture) {
    return undefined; // It will be applied to the first one.
  }
  const { backend, strength } = state;
  const noticed = at('notice').textContent;
  const result = await applyOn(backend, state.picture, filter, strength);
  const device = await deviceFor(backend); // Another one, if that was lost.
  if (backend === state.backend) {
    state.device = device;
  }
  const plan = await planOf(state.device, state.picture, filter, strength);
  if (turn === newest) {
    drawPlan(at('plan'), plan, INPUTS);
    at('plan-label').textContent = summary(plan, 'The three channels are one batch');
    show(at('after'), toPixels(result));
    at('after').setAttribute('aria-label', `The picture after the filter ${filter.label}`);
    status(account(filter, result));
    // What was said before this began is no longer so.
    if (at('notice').textContent === noticed) {
      notice('');
    }
    measureSoon();
  }
  return { channels: result.channels.slice(0, 3), milliseconds: result.milliseconds, filter, strength };
}

/** What was done, where, and in what time. */
function account(filter, { width, height, milliseconds }) {
  const { backend, info } = state.device;
  const small = tooSmallForGpu(state.backend, state.device, state.picture, filter);
  const gpu = info.software ? 'WebGPU in software' : 'WebGPU';
  const where = small ? 'SIMD (too little work for a trip to the GPU)' : backend === 'webgpu' ? gpu : 'SIMD';
  return `${filter.label}, ${filter.size} × ${filter.size}, on ${where}: three channels of ${width} × ${height} in ${inMilliseconds(milliseconds)}`;
}

/** The small pictures of the filters named. */
async function illustrate(names) {
  const { device, small } = state;
  if (!small) {
    return; // The first picture will have them all.
  }
  for (const name of names) {
    const filter = filters[name];
    const result = await applyFilter(device, small, filter);
    if (small !== state.small) {
      return;
    }
    if (filter === filters[name]) {
      choices.picture(name, toPixels(result));
    }
  }
}

// Timings ------------------------------------------------------------------------------------

let measuring = new AbortController();
let timer;
const chart = deferred();

function stopMeasuring() {
  clearTimeout(timer);
  measuring.abort();
}

function measureSoon(delay = IDLE_MS) {
  stopMeasuring();
  timer = setTimeout(() => state.picture && guard(runMeasurement), delay);
}

async function runMeasurement() {
  measuring = new AbortController();
  const { signal } = measuring;
  const filter = filters[state.name];
  const { width, height } = state.picture;
  const rows = [];
  at('chart').setAttribute('aria-busy', 'true');
  try {
    for await (const row of measure(state.picture, filter, signal)) {
      rows.push(row);
    }
    at('chart-label').textContent =
      `${filter.label}, ${filter.size} × ${filter.size}; one channel, ${width} × ${height}, upload and read-back included; ` +
      `medians of at least ${Math.min(...rows.map(({ runs = Infinity }) => runs))} runs.`;
    drawChart(at('chart'), rows);
    chart.resolve(rows);
  } catch (error) {
    if (!signal.aborted) {
      throw error;
    }
  } finally {
    at('chart').removeAttribute('aria-busy');
  }
}

function deferred() {
  const parts = {};
  parts.promise = new Promise((resolve) => (parts.resolve = resolve));
  return parts;
}

// The device ---------------------------------------------------------------------------------

/** The newest choice; a device that comes after it is not used. */
let newestChoice = 0;

async function chooseBackend(backend) {
  const turn = ++newestChoice;
  at('backend').querySelector(`[value=${backend}]`).checked = true;
  const found = await deviceOrSimd(backend);
  if (turn === newestChoice) {
    Object.assign(state, found);
    notice('');
    describe(state.device.info, backend);
  }
}

/** The device asked for, or else SIMD's and why. */
async function deviceOrSimd(backend) {
  try {
    return { backend, device: await deviceFor(backend, status), lack: '' };
  } catch (error) {
    if (backend === 'simd') {
      throw error;
    }
    const lack = `${explain(error)} What you see is computed with SIMD instead.`;
    return { backend: 'simd', device: await deviceFor('simd', status), lack };
  }
}

function describe(info, asked) {
  at('fact-backend').textContent = info.backend === 'webgpu' ? 'WebGPU' : 'SIMD in WebAssembly';
  at('fact-adapter').textContent = info.adapter ? `${info.adapter}${info.software ? ' (software)' : ''}` : 'none';
  at('fact-instructions').textContent = info.instructionSet;
  at('fact-reason').textContent = reasonFor(info, asked);
}

// Pictures -----------------------------------------------------------------------------------

/** The newest picture asked for; one that is there later is not shown. */
let newestPicture = 0;

async function open(blob, own, turn = ++newestPicture) {
  const pixels = await decode(blob).catch(() => undefined);
  if (turn !== newestPicture) {
    return;
  }
  if (!pixels) {
    notice('That is no picture that this browser can read.');
    return;
  }
  notice('');
  state.picture = planes(pixels);
  state.small = planes(thumbnail(pixels, 96));
  at('stage').style.setProperty('--aspect', pixels.width / pixels.height);
  show(at('before'), pixels);
  at('reset').hidden = !own;
  await apply(state.name);
  await illustrate(Object.keys(filters));
}

async function openPhotograph() {
  const turn = ++newestPicture;
  const response = await fetch(PHOTOGRAPH);
  if (!response.ok) {
    throw new Error(`the photograph could not be loaded: ${response.status}`);
  }
  await open(await response.blob(), false, turn);
}

const firstPicture = (items) => Array.from(items ?? []).find(({ type }) => type.startsWith('image/'));

function takePictures() {
  at('file').addEventListener('change', ({ target }) => {
    const [file] = target.files;
    target.value = '';
    if (file) {
      guard(() => open(file, true));
    }
  });
  at('reset').addEventListener('click', () => guard(openPhotograph));
  document.addEventListener('paste', ({ clipboardData }) => {
    const file = firstPicture(clipboardData?.files);
    if (file) {
      guard(() => open(file, true));
    }
  });
  document.addEventListener('dragover', (event) => {
    event.preventDefault();
    at('stage').classList.add('dropping');
  });
  document.addEventListener('dragleave', ({ relatedTarget }) => {
    if (!relatedTarget) {
      at('stage').classList.remove('dropping');
    }
  });
  document.addEventListener('drop', (event) => {
    event.preventDefault();
    at('stage').classList.remove('dropping');
    const [file] = event.dataTransfer.files;
    if (file) {
      guard(() => open(file, true));
    }
  });
}

// What goes wrong ----------------------------------------------------------------------------

function status(text) {
  at('status').textContent = text;
}

/** Shows `text`, or else what is to be said of the back-end. */
function notice(text) {
  at('notice').textContent = text || state.lack;
  at('notice').hidden = !at('notice').textContent;
}

/** Runs `work` and tells the visitor, in words, if it fails. */
async function guard(work) {
  try {
    return await work();
  } catch (error) {
    notice(explain(error));
    if (!state.picture) {
      status('There is nothing to show yet.');
    }
    return undefined;
  }
}

// Start --------------------------------------------------------------------------------------

async function changeBackend({ target }) {
  const url = new URL(location.href);
  url.searchParams.set('backend', target.value);
  history.replaceState(null, '', url);
  await guard(async () => {
    await chooseBackend(target.value);
    await apply(state.name);
  });
}

async function changeStrength({ target }) {
  state.strength = target.valueAsNumber / 100;
  at('strength-value').textContent = `${target.value} %`;
  await guard(() => apply(state.name));
}

async function start() {
  takePictures();
  at('strength').addEventListener('input', changeStrength);
  at('backend').addEventListener('change', changeBackend);
  at('measure').addEventListener('click', () => measureSoon(0));
  await apply(state.name); // Only shows its kernel, as there is no picture yet.
  await chooseBackend(state.backend);
  await openPhotograph();
}

window.relampagoDemo = {
  filters,
  apply,
  source: () => ({ ...state.picture, channels: state.picture.channels.map((channel) => channel.slice()) }),
  ready: guard(start),
  measured: chart.promise,
  get info() {
    return state.device?.info;
  },
};
