// What an application writes without a library: loops over typed arrays.

import { SCALE } from '../rows.js';

const ops = { relu, gelu, sigmoid, softmax, sum, matmul, conv, chain, mlp };

export async function open() {
  return {
    endToEnd: ({ op, shapes }, inputs, into) => ({ run: () => ops[op](inputs, shapes, into) }),
    resident: (_, inputs) => resident(inputs),
  };
}

function relu([x], _, y = new Float32Array(x.length)) {
  for (let i = 0; i < x.length; i++) {
    y[i] = x[i] > 0 ? x[i] : 0;
  }
  return y;
}

function sigmoid([x]) {
  const y = new Float32Array(x.length);
  for (let i = 0; i < x.length; i++) {
    y[i] = 1 / (1 + Math.exp(-x[i]));
  }
  return y;
}

function gelu([x]) {
  const y = new Float32Array(x.length);
  for (let i = 0; i < x.length; i++) {
    y[i] = (x[i] / 2) * (1 + erf(x[i] * Math.SQRT1_2));
  }
  return y;
}

// Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: within 1.5e-7.
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return Math.sign(x) * (1 - series * Math.exp(-x * x));
}

function softmax([x], _, y = new Float32Array(x.length)) {
  let max = -Infinity;
  for (let i = 0; i < x.length; i++) {
    max = Math.max(max, x[i]);
  }
  let total = 0;
  for (let i = 0; i < x.length; i++) {
    y[i] = Math.exp(x[i] - max);
    total += y[i];
  }
  for (let i = 0; i < x.length; i++) {
    y[i] /= total;
  }
  return y;
}

function sum([x]) {
  let total = 0;
  for (let i = 0; i < x.length; i++) {
    total += x[i];
  }
  return total;
}

function matmul([a, b], [[m, k], [, n]]) {
  const c = new Float32Array(m * n);
  for (let row = 0; row < m; row++) {
    const out = c.subarray(row * n, (row + 1) * n);
    for (let i = 0; i < k; i++) {
      const factor = a[row * k + i];
      const values = b.subarray(i * n, (i + 1) * n);
      for (let col = 0; col < n; col++) {
        out[col] += factor * values[col];
      }
    }
  }
  return c;
}

function conv([input, kernel], [[inputRows, inputCols], [kernelRows, kernelCols]]) {
  const [rows, cols] = [inputRows - kernelRows + 1, inputCols - kernelCols + 1];
  const y = new Float32Array(rows * cols);
  for (let row = 0; row < rows; row++) {
    for (let col = 0; col < cols; col++) {
      let total = 0;
      for (let i = 0; i < kernelRows; i++) {
        for (let j = 0; j < kernelCols; j++) {
          total += kernel[i * kernelCols + j] * input[(row + i) * inputCols + col + j];
        }
      }
      y[row * cols + col] = total;
    }
  }
  return y;
}

function mlp([x, w1, w2], [rows, first, second]) {
  const hidden = gelu([matmul([x, w1], [rows, first])]);
  return matmul([hidden, w2], [[rows[0], first[1]], second]);
}

function chain([x, bias], _, y = new Float32Array(x.length)) {
  chainInto(y, x, bias);
  return y;
}

function chainInto(y, x, bias) {
  for (let i = 0; i < x.length; i++) {
    y[i] = (x[i] > 0 ? x[i] : 0) * SCALE + bias[i];
  }
}

function resident([input, bias]) {
  let [x, spare] = [input.slice(), new Float32Array(input.length)];
  return {
    step() {
      chainInto(spare, x, bias);
      [x, spare] = [spare, x];
    },
    read: () => x.slice(),
  };
}
