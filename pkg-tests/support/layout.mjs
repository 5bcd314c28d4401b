// What the tests of pages ask of any of them: where the focus is seen, and how texts and controls are laid out.

import assert from 'node:assert/strict';

/** Nothing reaches beyond the width, texts have contrast, and controls have room for a finger. */
export function verifyLayout({ width, contrasts, targets }, expected) {
  assert.equal(width, expected);
  assert.ok(contrasts.length > 5);
  contrasts.forEach(({ text, contrast }) => assert.ok(contrast >= 4.5, `${text}: ${contrast.toFixed(2)}`));
  targets.forEach(({ name, height }) => assert.ok(height >= 24, `${name}: ${height} px`));
}

/** In the page: what has the focus, and whether it shows that. The input of files is hidden, so its label does. */
export function focus() {
  const element = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(element.id === 'file' ? element.parentElement : element);
  return { name: element.id || element.tagName, isShown: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1 };
}

/** In the page: the width of what is laid out, the contrasts of texts, and the heights of what is pressed. */
export function layout() {
  const context = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d');
  const channels = (color, below = [0, 0, 0]) => {
    context.fillStyle = `rgb(${below.join(' ')})`;
    context.fillRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const linear = (channel) => (channel / 255 <= 0.04045 ? channel / 255 / 12.92 : ((channel / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = (color) => color.map(linear).reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
  const background = (element) => {
    const below = element.parentElement ? background(element.parentElement) : channels('Canvas');
    return channels(getComputedStyle(element).backgroundColor, below);
  };
  const contrast = (element) => {
    const behind = background(element);
    const [a, b] = [channels(getComputedStyle(element).color, behind), behind].map((color) => luminance(color) + 0.05);
    return Math.max(a, b) / Math.min(a, b);
  };
  const isText = (element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const isShown = (element) => element.checkVisibility() && !element.closest('.visually-hidden') && !element.disabled;
  const texts = [...document.body.querySelectorAll('*')].filter((element) => isText(element) && isShown(element));
  return {
    width: document.documentElement.scrollWidth,
    contrasts: texts.map((element) => ({ text: element.textContent.trim().slice(0, 30), contrast: contrast(element) })),
    targets: [...document.querySelectorAll('button, .button, textarea, select')].map((element) => ({
      name: element.id || element.textContent,
      height: element.getBoundingClientRect().height,
    })),
  };
}
