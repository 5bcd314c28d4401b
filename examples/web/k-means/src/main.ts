import init, { GpuDevice, type Tensor } from 'relampago';
import { points as pointsOf, stepOf, type Clusters } from './clusters.js';

const [POINTS, CLUSTERS] = [6000, 6];
const COLOURS = ['#3366cc', '#dc3912', '#ff9900', '#109618', '#990099', '#0099c6'];

const element = <Kind extends HTMLElement>(id: string): Kind => {
  const found = document.getElementById(id);
  if (!found) {
    throw new Error(`the page has no element ${id}`);
  }
  return found as Kind;
};
const canvas = element<HTMLCanvasElement>('plane');
const state = element<HTMLOutputElement>('state');
const button = element<HTMLButtonElement>('step');

async function draw(points: Tensor, { labels, centres }: Clusters): Promise<void> {
  const context = canvas.getContext('2d');
  if (!context) {
    return;
  }
  const [at, nearest, middles] = await points.device.read([points, labels, centres]);
  const circle = (x: number, y: number, radius: number): void => {
    context.beginPath();
    context.arc(x * canvas.width, y * canvas.height, radius, 0, 2 * Math.PI);
    context.fill();
  };
  context.clearRect(0, 0, canvas.width, canvas.height);
  nearest.forEach((label, i) => {
    context.fillStyle = COLOURS[label] ?? '#888';
    circle(at[2 * i] ?? 0, at[2 * i + 1] ?? 0, 1.5);
  });
  context.fillStyle = '#000';
  for (let i = 0; i < CLUSTERS; i++) {
    circle(middles[2 * i] ?? 0, middles[2 * i + 1] ?? 0, 5);
  }
}

const fail = (error: unknown): void => {
  state.textContent = String(error);
};

async function start(): Promise<void> {
  await init();
  const device = await GpuDevice.create();
  const points = await pointsOf(device, POINTS, CLUSTERS);
  const step = stepOf(device, CLUSTERS);
  let clusters = await step(points, device.random.uniform([CLUSTERS, 2], { seed: 5 }));
  let steps = 1;
  let moved = Infinity;

  const advance = async (): Promise<void> => {
    const last = clusters;
    clusters = await step(points, last.centres);
    moved = await clusters.centres.sub(last.centres).abs().max().item();
    last.labels.dispose();
    last.centres.dispose();
    steps += 1;
  };

  const show = async (): Promise<void> => {
    await draw(points, clusters);
    state.textContent = `${device.backend}: ${steps} steps, moved ${moved.toFixed(4)}`;
  };

  await show();
  button.addEventListener('click', () => {
    // One step at a time: each disposes of the tensors of the one before.
    button.disabled = true;
    advance().then(show).catch(fail).finally(() => {
      button.disabled = false;
    });
  });
}

start().catch(fail);
