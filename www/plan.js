// What a batch becomes: a line for each kernel, from what it reads to what it writes.

import { element } from './element.js';

/**
 * @param {HTMLElement} list Where the lines go.
 * @param {import('./relampago/index.js').Plan} plan
 * @param {string[]} inputs The inputs' names, in the order of recording; others have numbers.
 */
export function drawPlan(list, { kernels }, inputs) {
  const nameOf = ({ input, buffer }) => (input === undefined ? `buffer ${buffer + 1}` : inputs[input] ?? `input ${input + 1}`);
  list.replaceChildren(...kernels.map(({ operations, reads, writes, bytesMoved }) => {
    const item = element('li', 'kernel');
    item.append(
      chips('reads', reads.map(nameOf)),
      chips('operations', operations.map(words)),
      chips('writes', [nameOf(writes)]),
      element('span', 'kernel-note', `moves ${inBytes(bytesMoved)}`),
    );
    return item;
  }));
}

/** Returns a sentence that begins with `title` and counts what a plan has. */
export function summary({ kernels, buffers }, title) {
  const operations = kernels.reduce((sum, kernel) => sum + kernel.operations.length, 0);
  const bytes = kernels.reduce((sum, kernel) => sum + kernel.bytesMoved, 0);
  return `${title}: ${count(operations, 'operation')} in ${count(kernels.length, 'kernel')}, ` +
    `${count(buffers.length, 'buffer')} for results, ${inBytes(bytes)} moved in all.`;
}

function chips(kind, texts) {
  const group = element('span', `chips ${kind}`);
  group.append(...texts.map((text) => element('span', 'chip', text)));
  return group;
}

const words = (operation) => operation.replace(/_with$/, '').replaceAll('_', ' ');

const count = (number, noun) => `${number} ${noun}${number === 1 ? '' : 's'}`;

const inBytes = (bytes) => (bytes < 1e5 ? `${bytes} bytes` : `${(bytes / 1e6).toFixed(1)} MB`);
