// The playground: code with types, its output and results beside it, and a link that carries it.
//
// For checks, `window.relampagoPlayground` offers
//   ready       a promise of the first code
//   checked()   a promise of the errors in the code as it is: `{ line, message }` each

import { codeField } from './code.js';
import { element } from './element.js';
import { EXAMPLES, codeOf } from './examples.js';
import { codeIn, linkTo } from './run/link.js';
import { runOnClick } from './run/panel.js';
import { check } from './types/check.js';
import { explain } from './words.js';

/** How long a visitor has to stop typing before the code is checked. */
const PAUSE_MS = 400;

const at = (id) => document.getElementById(id);
const say = (id, text) => { at(id).textContent = text; };

let timer;
const field = codeField(at('code'), 'Code', () => at('run').click(), () => {
  clearTimeout(timer);
  timer = setTimeout(showTypes, PAUSE_MS);
});

/** The newest check; an older one that ends later is not shown. */
let newest = 0;

/** The code that ran last, with its error at a line. A check of the same code, which may end later, leaves the mark. */
let failed = {};

/** Marks the lines of type errors, and that of the last run's error. */
function mark(errors) {
  field.mark(failed.code === field.value ? [...errors, failed.error] : errors);
}

/** Checks the code's types, and returns its errors. */
async function showTypes() {
  const turn = ++newest;
  const errors = await check(field.value).catch((error) => {
    say('types-state', explain(error));
    return [];
  });
  if (turn === newest) {
    mark(errors);
    at('types').replaceChildren(...errors.map(entryOf));
    say('types-state', errors.length ? 'Each entry leads to its line.' : 'The types are right.');
  }
  return errors;
}

function entryOf({ line, message }) {
  const item = element('li', '');
  const button = Object.assign(element('button', '', `line ${line}: ${message}`), { type: 'button' });
  button.addEventListener('click', () => field.goTo(line));
  item.append(button);
  return item;
}

function open(code) {
  field.value = code;
  say('shared', '');
  return showTypes();
}

async function share() {
  const { href } = await linkTo(field.value);
  history.replaceState(null, '', href);
  try {
    await navigator.clipboard.writeText(href);
    say('shared', 'Copied.');
  } catch {
    say('shared', 'The address of this page is the link now.');
  }
}

/** Opens the code of the page's address, or else the first example. */
async function openFirst() {
  const code = await codeIn(location.hash);
  at('examples').selectedIndex = code === undefined ? 0 : -1;
  open(code ?? (await codeOf(EXAMPLES[0])));
}

async function guard(work) {
  at('notice').hidden = true;
  try {
    await work();
  } catch (error) {
    say('notice', explain(error));
    at('notice').hidden = false;
  }
}

at('examples').append(...EXAMPLES.map(({ title }) => element('option', '', title)));
at('examples').addEventListener('change', ({ target }) => guard(async () => open(await codeOf(EXAMPLES[target.selectedIndex]))));
at('share').addEventListener('click', () => guard(share));
addEventListener('hashchange', () => guard(openFirst));
runOnClick(at('run'), at('output'), () => field.value, ({ error }) => {
  failed = error?.line ? { code: field.value, error } : {};
  error?.line && mark([]);
});

globalThis.relampagoPlayground = { ready: guard(openFirst), checked: showTypes };
