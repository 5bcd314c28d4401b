// The row of filters, each with a picture of what it does.

import { filters } from './filters.js';
import { show } from './image.js';

/** Fills `container` with a radio button for each filter of `names`; `choose` hears of the visitor's choice. */
export function gallery(container, choose, names = Object.keys(filters)) {
  const entries = names.map((name) => {
    const { label } = filters[name];
    const input = Object.assign(document.createElement('input'), { type: 'radio', name: 'filter', value: name });
    input.addEventListener('change', () => choose(name));
    const canvas = Object.assign(document.createElement('canvas'), { width: 96, height: 96 });
    canvas.setAttribute('aria-hidden', 'true');
    const caption = Object.assign(document.createElement('span'), { textContent: label });
    const choice = Object.assign(document.createElement('label'), { className: 'choice' });
    choice.append(input, canvas, caption);
    container.append(choice);
    return [name, { input, canvas }];
  });
  const choices = Object.fromEntries(entries);
  return {
    select: (name) => (choices[name].input.checked = true),
    picture: (name, pixels) => show(choices[name].canvas, pixels),
  };
}
