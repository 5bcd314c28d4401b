// Tensors that are long enough for compiled loops, beside plain loops.

const LENGTH = 40_003;

/** The largest difference of a chain with repeated numbers, whose factor changes from run to run. */
async function chains(device) {
  const values = Float32Array.from({ length: LENGTH }, (_, i) => Math.sin(i * i) * 4);
  const others = values.slice().reverse();
  const [x, y] = [device.tensor(values), device.tensor(others)];
  let furthest = 0;
  for (const factor of [2, -0.5, 3, 1e-3]) {
    const found = await x.relu().mul(factor).add(y).mul(x).sub(factor).data();
    for (let i = 0; i < LENGTH; i++) {
      const right = (Math.max(values[i], 0) * factor + others[i]) * values[i] - factor;
      furthest = Math.max(furthest, Math.abs(found[i] - right) / (1 + Math.abs(right)));
    }
  }
  return furthest;
}

/** How many reductions of short rows and of narrow columns are wrong. */
async function reductions(device) {
  const [rows, cols] = [4001, 10];
  const values = Float32Array.from({ length: rows * cols }, (_, i) => Math.round(Math.sin(i * i) * 8));
  const x = device.tensor(values, [rows, cols]);
  const at = (row, col) => values[row * cols + col];
  const list = (count, element) => Array.from({ length: count }, (_, i) => element(i));
  const row = (i) => list(cols, (col) => at(i, col));
  const column = (i) => list(rows, (one) => at(one, i));
  const largest = (all) => all.indexOf(Math.max(...all));
  const sum = (all) => all.reduce((total, value) => total + value, 0);
  const cases = [
    [x.argmax(1), list(rows, (i) => largest(row(i)))],
    [x.argmin(1), list(rows, (i) => row(i).indexOf(Math.min(...row(i))))],
    [x.sum(1), list(rows, (i) => sum(row(i)))],
    [x.max(1), list(rows, (i) => Math.max(...row(i)))],
    [x.argmax(0), list(cols, (i) => largest(column(i)))],
    [x.sum(0), list(cols, (i) => sum(column(i)))],
    [x.min(0), list(cols, (i) => Math.min(...column(i)))],
  ];
  const found = await device.read(cases.map(([tensor]) => tensor));
  return cases.filter(([, right], i) => right.some((value, k) => value !== found[i][k])).length;
}

export const long = async (device) => ({ isNear: (await chains(device)) < 1e-6, wrong: await reductions(device) });
