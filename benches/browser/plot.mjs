// Draws what `drive.py` or `bench-gpu` measured where there is no Node:
// node benches/browser/plot.mjs RESULTS.json TITLE > PLOT.svg

import { readFileSync } from 'node:fs';
import { barsOf, chart } from './chart.mjs';

const [file, where] = process.argv.slice(2);
const { rows, resident } = JSON.parse(readFileSync(file, 'utf8'));

// Rows of `bench-gpu` that PyTorch has, too.
const besidePyTorch = resident?.flatMap(({ name, microseconds, 'pytorch, microseconds': theirs }) =>
  (theirs ? [{ name, best: 'PyTorch', ratio: theirs / microseconds }] : []));

process.stdout.write(chart(where, besidePyTorch ?? barsOf(rows)));
