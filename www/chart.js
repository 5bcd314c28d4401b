// Bars for the timings, and what there is to say about each.

import { element } from './element.js';
import { explain, inMilliseconds } from './words.js';

const KIND = { GPU: 'gpu', SIMD: 'simd', 'Plain JS': 'plain' };

/** Draws the rows that are there so far; bars share one linear scale. */
export function drawChart(list, rows) {
  const longest = Math.max(...rows.map(({ milliseconds = 0 }) => milliseconds), Number.MIN_VALUE);
  const plain = rows.find(({ name }) => name === 'Plain JS')?.milliseconds;
  list.replaceChildren(...rows.map((row) => bar(row, longest, plain)));
}

function bar(row, longest, plain) {
  const item = element('li', `bar ${KIND[row.name]}`);
  const timed = row.milliseconds !== undefined;
  item.classList.toggle('software', row.info?.software ?? false);
  item.classList.toggle('absent', !timed);
  const value = element('span', 'bar-value', timed ? inMilliseconds(row.milliseconds) : 'not here');
  item.append(element('span', 'bar-name', row.name), value);
  if (timed) {
    const track = element('span', 'bar-track');
    const fill = element('span', 'bar-fill');
    fill.style.inlineSize = `${(100 * row.milliseconds) / longest}%`;
    track.append(fill);
    item.append(track);
  }
  const note = element('span', 'bar-note', [about(row), timed && versus(row, plain)].filter(Boolean).join(' · '));
  item.append(note);
  return item;
}

function about({ name, info, error }) {
  if (error) {
    return explain(error);
  }
  if (name === 'GPU') {
    return info.software ? `${info.adapter}: a software adapter, a GPU played by the CPU` : info.adapter;
  }
  return name === 'SIMD' ? info.instructionSet : 'plain loops, Float32Array';
}

function versus({ name, milliseconds }, plain) {
  if (name === 'Plain JS' || !plain) {
    return '';
  }
  const ratio = plain / milliseconds;
  return ratio >= 1 ? `${figure(ratio)}× as fast as plain JS` : `${figure(1 / ratio)}× the time of plain JS`;
}

const figure = (ratio) => ratio.toFixed(ratio < 10 ? 1 : 0);
