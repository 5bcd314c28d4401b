// What a batch becomes: a line for each kernel, from what it reads to what it writes.

import { element } from './element.js';

/**
 * @param {HTMLElement} list Where the lines go.
 * @param {import('./relampago/index.js').Plan} plan
 * @param {string[]} inputs What the visitor knows the inputs as, in the order of recording.
 */
export function drawPlan(list, { kernels }, inputs) {
  const nameOf = ({ input, buffer }) => inputs[input] ?? `buffer ${buffer + 1}`;
  list.replaceChildren(...kernels.map(({ operations, reads, writes, bytesMoved }) => {
    const item = element('li', 'kernel');
    item.append(
      chips('reads', reads.map(nameOf)),
      chips('operations', operations.map(words)),
      chips('writes', [nameOf(writes)]),
      element('span', 'kernel-note', `moves ${inMegabytes(bytesMoved)}`),
    );
    return item;
  }));
}

/** The plan in a sentence. */
export function summary({ kernels, buffers }) {
  const operations = kernels.reduce((sum, kernel) => sum + kernel.operations.length, 0);
  const bytes = kernels.reduce((sum, kernel) => sum + kernel.bytesMoved, 0);
  return `The three channels are one batch: ${count(operations, 'operation')} in ${count(kernels.length, 'kernel')}, ` +
    `${count(buffers.length, 'buffer')} for results, ${inMegabytes(bytes)} moved in all.`;
}

function chips(kind, texts) {
  const group = element('span', `chips ${kind}`);
  group.append(...texts.map((text) => element('span', 'chip', text)));
  return group;
}

const words = (operation) => operation.replace(/_with$/, '').replaceAll('_', ' ');

const count = (number, noun) => `${number} ${noun}${number === 1 ? '' : 's'}`;

const inMegabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
