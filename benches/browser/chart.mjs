// A bar for each row: how many times as long the fastest other takes.

import { comparison } from './compare.mjs';

// Longer bars end here; their numbers do not.
const LONGEST = 6;

const WIDTH = 780;
const LABELS = 270;
const BARS = 320;
const TOP = 64;
const STEP = 28;
const BAR = 16;

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-size: 16px; font-weight: 600; }
  .quiet { fill: #59636e; }
  .faster { fill: #0969da; }
  .slower { fill: #bc4c00; }
  line { stroke: #59636e; stroke-dasharray: 3 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .quiet { fill: #9198a1; }
    .faster { fill: #4493f8; }
    .slower { fill: #db6d28; }
    line { stroke: #9198a1; }
  }`;

// The bars of a race in the browser, without rows that no other finished.
export function barsOf(rows) {
  return rows.flatMap((row) => {
    const { best, ratios: [first] } = comparison(row);
    return first ? [{ name: row.name, best, ratio: first.ratio }] : [];
  });
}

export function chart(where, bars) {
  const scale = BARS / Math.min(LONGEST, Math.max(1, ...bars.map(({ ratio }) => ratio)));
  const height = TOP + bars.length * STEP + 12;
  const one = LABELS + scale;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>Times of the fastest other over times of relampago, ${where}</title>
<style>${STYLE}
</style>
<text class="title" x="12" y="24">${where}</text>
<text class="quiet" x="12" y="44">How many times as long the fastest other takes; more is better for relampago</text>
${bars.map((bar, i) => drawn(bar, scale, TOP + i * STEP)).join('\n')}
<line x1="${one.toFixed(1)}" x2="${one.toFixed(1)}" y1="${TOP - 6}" y2="${height - 8}"/>
</svg>
`;
}

function drawn({ name, best, ratio }, scale, top) {
  const width = Math.max(Math.min(ratio, LONGEST) * scale, 1).toFixed(1);
  const middle = top + BAR - 3;
  return `<text x="${LABELS - 10}" y="${middle}" text-anchor="end">${name}</text>
<rect class="${ratio >= 1 ? 'faster' : 'slower'}" x="${LABELS}" y="${top}" width="${width}" height="${BAR}" rx="2"/>
<text x="${LABELS + BARS + 54}" y="${middle}" text-anchor="end">${ratio.toFixed(ratio < 10 ? 2 : 0)} ×</text>
<text class="quiet" x="${LABELS + BARS + 60}" y="${middle}">${best}</text>`;
}
