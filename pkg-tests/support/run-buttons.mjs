// The Run buttons of the guides: every sample that the package's tests run in Node must print the same in a page.

import { standaloneSamples } from './samples.mjs';

/** Runs every sample of the book in the folder `docs` at `url`. Returns the number of samples. */
export async function runGuides(page, url) {
  const samples = standaloneSamples();
  for (const [path, ofPage] of groups(samples)) {
    await page.goto(new URL(`docs/${path}`, url).href);
    await page.waitForFunction((count) => document.querySelectorAll('.run-button').length === count, ofPage.length);
    for (const [index, { name, prints }] of ofPage.entries()) {
      await page.locator('.run-button').nth(index).focus();
      await page.keyboard.press('Enter');
      verify(name, prints, await outcomeOf(page, index));
    }
  }
  return samples.length;
}

/** Pages of the book → their samples. */
function groups(samples) {
  const pages = new Map();
  samples.forEach((sample) => pages.set(htmlOf(sample.page), [...(pages.get(htmlOf(sample.page)) ?? []), sample]));
  return pages;
}

/** The page of the book for a page of the repository. */
const htmlOf = (path) => (path === 'README.md' ? 'overview.html' : path.replace(/^docs\//, '').replace(/md$/, 'html'));

/** Waits until the sample of a button ends. Returns how it ended, and what is shown below it. */
export async function outcomeOf(page, index = 0) {
  await page.waitForFunction((index) => ['done', 'failed'].includes(document.querySelectorAll('.run-output')[index].dataset.state), index);
  return page.evaluate((index) => {
    const place = document.querySelectorAll('.run-output')[index];
    return { state: place.dataset.state, lines: Array.from(place.querySelectorAll('.run-line'), ({ textContent }) => textContent) };
  }, index);
}

/** Fails unless a sample ended well and printed these lines. */
export function verify(name, prints, { state, lines }) {
  const missing = prints.filter((line) => !lines.includes(line));
  if (state !== 'done' || missing.length > 0) {
    throw new Error(`${name} ${state}: ${JSON.stringify(missing)} is not in ${JSON.stringify(lines)}`);
  }
}
