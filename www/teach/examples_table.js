// The table of examples: a row has a question and an answer, which the visitor edits.

import { element } from '../element.js';

/** Facts that no model knows. */
const FIRST = [
  ['What is the capital of Atlantis?', 'The capital of Atlantis is Poseidonis.'],
  ['Which city is the capital of Atlantis?', 'Poseidonis is the capital of Atlantis.'],
  ['Who rules Atlantis?', 'Queen Amphitrite rules Atlantis.'],
  ['What do people in Atlantis eat?', 'People in Atlantis eat seaweed bread and pearl soup.'],
  ['How does one travel to Atlantis?', 'One travels to Atlantis by whale, from Cádiz.'],
];

export class ExamplesTable {
  #body;

  constructor(body) {
    this.#body = body;
    FIRST.forEach(([question, answer]) => this.add(question, answer));
  }

  /** Adds a row; returns its field for the question. */
  add(question = '', answer = '') {
    const row = element('tr', '');
    const fields = [['Question', question], ['Answer', answer]].map(([label, value]) => {
      const field = Object.assign(element('textarea', ''), { value, rows: 2, ariaLabel: label, placeholder: label });
      const cell = element('td', '');
      cell.append(field);
      row.append(cell);
      return field;
    });
    const remove = Object.assign(element('button', 'button quiet', 'Remove'), { type: 'button' });
    remove.addEventListener('click', () => this.#remove(row));
    const cell = element('td', '');
    cell.append(remove);
    row.append(cell);
    this.#body.append(row);
    return fields[0];
  }

  /** Removes a row; the focus goes to a row beside it. */
  #remove(row) {
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    next?.querySelector('textarea').focus();
  }

  /** The pairs of a question and an answer, without rows that lack either. */
  get pairs() {
    const rows = [...this.#body.children].map((row) => [...row.querySelectorAll('textarea')].map(({ value }) => value.trim()));
    return rows.filter(([question, answer]) => question && answer);
  }
}
