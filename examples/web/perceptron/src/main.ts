import init, { GpuDevice, type Tensor, type WeightFormat } from 'relampago';
import { INPUTS, Perceptron, bytesOf, weightsOf } from './perceptron.js';

const FORMATS: readonly WeightFormat[] = ['f32', 'f16', 'q8_0', 'q4_0'];
const COUNT = 64;

const table = document.querySelector<HTMLTableElement>('#table');
const state = document.querySelector<HTMLOutputElement>('#state');

function addRow(cells: readonly string[]): void {
  const row = table?.insertRow();
  cells.forEach((text) => {
    const cell = row?.insertCell();
    if (cell) {
      cell.textContent = text;
    }
  });
}

/** The largest difference of scores, and the part of inputs whose best class is the same. */
async function compare(scores: Tensor, exact: Tensor): Promise<[error: number, same: number]> {
  const error = scores.sub(exact).abs().max();
  const same = scores.argmax(1).equal(exact.argmax(1)).mean();
  return [await error.item(), await same.item()];
}

/** Fills the table, and returns how that ended. */
async function run(): Promise<string> {
  await init();
  const device = await GpuDevice.create();
  const weights = await weightsOf(device);
  const inputs = await device.random.normal([COUNT, INPUTS], { seed: 9 }).data();
  let exact: Tensor | undefined;
  for (const format of FORMATS) {
    const perceptron = await Perceptron.create(device, weights, format);
    await perceptron.scores(inputs, COUNT);
    const start = performance.now();
    const scores = await perceptron.scores(inputs, COUNT);
    const time = performance.now() - start;
    exact ??= scores;
    const [error, same] = await compare(scores, exact);
    addRow([format, String(bytesOf(format)), error.toExponential(1), `${(100 * same).toFixed(0)}%`, time.toFixed(2)]);
    perceptron.dispose();
  }
  return `done on ${device.backend}`;
}

const outcome = await run().catch(String);
if (state) {
  state.textContent = outcome;
}
