// A field for code: a text area with line numbers, of which some are marked. The Tab key leaves it as it leaves any field;
// Ctrl and Enter press its button.

import { element } from './element.js';

/**
 * Puts a field into `host`.
 * @param {HTMLElement} host
 * @param {string} label
 * @param {() => void} submit Is called at Ctrl and Enter.
 * @param {() => void} [change] Is called at each change that the visitor makes.
 */
export function codeField(host, label, submit, change = () => {}) {
  const numbers = element('div', 'code-numbers');
  numbers.setAttribute('aria-hidden', 'true');
  const text = Object.assign(element('textarea', 'code-text'), { spellcheck: false, wrap: 'off', autocapitalize: 'off', autocomplete: 'off' });
  text.setAttribute('aria-label', label);
  host.classList.add('code');
  host.append(numbers, text);
  let marks = [];

  function draw() {
    const lines = text.value.split('\n').length;
    text.rows = lines;
    numbers.replaceChildren(...Array.from({ length: lines }, (_, i) => {
      const messages = marks.filter(({ line }) => line === i + 1).map(({ message }) => message);
      return Object.assign(element('div', messages.length ? 'code-wrong' : '', String(i + 1)), { title: messages.join('\n') });
    }));
    text.setAttribute('aria-invalid', String(marks.length > 0));
  }

  text.addEventListener('input', () => {
    marks = [];
    draw();
    change();
  });
  text.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      submit();
    }
  });
  draw();

  return {
    get value() {
      return text.value;
    },
    set value(code) {
      text.value = code;
      marks = [];
      draw();
    },
    /** Marks lines: `{ line, message }` each. */
    mark(wrong) {
      marks = wrong;
      draw();
    },
    /** Moves the cursor to the beginning of a line. */
    goTo(line) {
      const at = text.value.split('\n').slice(0, line - 1).reduce((sum, { length }) => sum + length + 1, 0);
      text.focus();
      text.setSelectionRange(at, at);
    },
  };
}
