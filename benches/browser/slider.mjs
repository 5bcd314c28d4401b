// The slider of `examples/web/sharpen` in headless Chromium: how many images and frames a second it gives while it
// moves. `cargo xtask test --only pkg-tests` builds the example; then `node slider.mjs [FRAMES]`.

import { fileURLToPath } from 'node:url';
import { launch } from '../../pkg-tests/support/browser.mjs';
import { serve } from '../../pkg-tests/support/serve.mjs';
import { quartiles } from './statistics.mjs';

const FRAMES = Number(process.argv[2] ?? 180);
const built = fileURLToPath(new URL('../../pkg-tests/hosts/target/example-sharpen/dist', import.meta.url));

const server = await serve(built);
const browser = await launch();
try {
  const page = await browser.newPage();
  await page.goto(`${server.url}/index.html`);
  await page.waitForFunction(() => document.querySelector('#state')?.textContent.includes('radius'));
  await page.evaluate(moved, 60);
  const { frames, images, size } = await page.evaluate(moved, FRAMES);
  const { median } = quartiles(frames);
  const seconds = frames.reduce((sum, frame) => sum + frame, 0) / 1000;
  const rate = (images / seconds).toFixed(1);
  console.log(`${size}: ${rate} images a second; frames: median ${median.toFixed(1)} ms, longest ${Math.max(...frames).toFixed(1)} ms`);
} finally {
  await browser.close();
  server.close();
}

/** Moves the slider once a frame; returns the frames' milliseconds, and the number of images drawn meanwhile. */
async function moved(count) {
  const slider = document.querySelector('#amount');
  const canvas = document.querySelector('canvas');
  const context = canvas.getContext('2d');
  const draw = context.putImageData;
  let images = 0;
  context.putImageData = function (...values) {
    images++;
    return draw.apply(this, values);
  };
  const { set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
  const frames = [];
  let last = await new Promise(requestAnimationFrame);
  while (frames.length < count) {
    set.call(slider, String(0.5 + (frames.length % 8) / 2));
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - last);
    last = now;
  }
  context.putImageData = draw;
  return { frames, images, size: `${canvas.width} × ${canvas.height}` };
}
