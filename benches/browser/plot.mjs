// Draws what `drive.py` or `bench-gpu` measured where there is no Node:
// node benches/browser/plot.mjs RESULTS.json TITLE > PLOT.svg

import { readFileSync } from 'node:fs';
import { barsOf, chart } from './chart.mjs';

const [file, where] = process.argv.slice(2);
const { rows, resident, 'round trips': trips } = JSON.parse(readFileSync(file, 'utf8'));

// Rows of `bench-gpu` that PyTorch has, too; a trip's first time is ours.
const besidePyTorch = (measured) => measured.flatMap((row) => {
  const [theirs, ours] = [row['pytorch, microseconds'], row.microseconds[0]?.[1] ?? row.microseconds];
  return theirs ? [{ name: row.name, best: 'PyTorch', ratio: theirs / ours }] : [];
});

process.stdout.write(chart(where, rows ? barsOf(rows) : besidePyTorch([...resident, ...trips])));
