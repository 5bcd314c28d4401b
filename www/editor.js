// The grid of weights. Kernels that are too large to type in are shown as a picture.

import { editable } from './filters.js';

/** `change` hears of every kernel that the visitor makes. */
export function kernelEditor({ grid, sizes, sum, hint, normalise }, change) {
  const usual = hint.textContent;
  let filter;
  let cells = [];

  /** Shows a filter's kernel; what is shown already is left alone, the visitor's cursor with it. */
  function display(next) {
    if (next === filter) {
      return;
    }
    filter = next;
    cells = editable(filter) ? inputs() : [];
    grid.style.setProperty('--size', filter.size);
    grid.replaceChildren(...(cells.length ? cells : [heatMap(filter)]));
    for (const radio of sizes.querySelectorAll('input')) {
      radio.checked = Number(radio.value) === filter.size;
    }
    normalise.disabled = !editable(filter);
    say(editable(filter) ? usual : `${filter.size} × ${filter.size} weights, the stronger the larger. Choose a size to write your own.`);
    showSum();
  }

  function inputs() {
    return Array.from(filter.kernel, (weight, i) => {
      const input = document.createElement('input');
      Object.assign(input, { type: 'number', step: 'any', value: short(weight), required: true });
      const [row, col] = [Math.floor(i / filter.size) + 1, (i % filter.size) + 1];
      input.setAttribute('aria-label', `Weight in row ${row}, column ${col}`);
      input.addEventListener('input', () => typed(i, input));
      return input;
    });
  }

  function typed(i, input) {
    const valid = Math.abs(input.valueAsNumber) <= 1e6; // NaN, as of an empty field, is not.
    input.setAttribute('aria-invalid', String(!valid));
    const allValid = cells.every((cell) => cell.getAttribute('aria-invalid') !== 'true');
    say(allValid ? usual : 'Every weight has to be a number between −1,000,000 and 1,000,000.');
    if (!valid) {
      return;
    }
    make(filter.kernel.map((weight, at) => (at === i ? input.valueAsNumber : weight)), filter.size, true);
  }

  /** Tells of a kernel of the visitor's own; `keep` where the grid shows it already. */
  function make(kernel, size, keep) {
    const made = { label: 'Your own', size, kernel: Float32Array.from(kernel) };
    if (keep) {
      filter = made;
      showSum();
    } else {
      display(made);
    }
    change(made);
  }

  function divideBySum() {
    const sum = total(filter.kernel);
    if (Math.abs(sum) < 1e-6) {
      say('These weights sum to 0: there is nothing to divide by. Flat areas turn black.');
      return;
    }
    make(filter.kernel.map((weight) => weight / sum), filter.size, false);
    say('Each weight was divided by the sum; brightness stays as it is.');
  }

  /** The same kernel with a border of zeros more or less; the middle of what is too large. */
  function resize(size) {
    const shift = (filter.size - size) / 2;
    const kernel = Array.from({ length: size * size }, (_, i) => {
      const [row, col] = [Math.floor(i / size) + shift, (i % size) + shift];
      const within = Math.min(row, col) >= 0 && Math.max(row, col) < filter.size;
      return within ? filter.kernel[row * filter.size + col] : 0;
    });
    make(kernel, size, false);
  }

  const showSum = () => (sum.textContent = short(total(filter.kernel)));
  const say = (text) => (hint.textContent = text);

  normalise.addEventListener('click', divideBySum);
  sizes.addEventListener('change', ({ target }) => resize(Number(target.value)));
  return { display };
}

const total = (values) => values.reduce((sum, value) => sum + value, 0);
const short = (value) => String(Number(value.toPrecision(3)) || 0);

function heatMap({ kernel, size, label }) {
  const canvas = Object.assign(document.createElement('canvas'), { width: size, height: size, className: 'heat' });
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', `The ${size} by ${size} weights of ${label}`);
  const most = kernel.reduce((least, weight) => Math.max(least, Math.abs(weight)), 0);
  const context = canvas.getContext('2d');
  kernel.forEach((weight, i) => {
    context.fillStyle = `rgb(255 204 51 / ${Math.abs(weight) / most})`;
    context.fillRect(i % size, Math.floor(i / size), 1, 1);
  });
  return canvas;
}
