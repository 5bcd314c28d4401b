// Puts a Run button below each JavaScript sample of a guide. The guides' pages load this file from beside the book.

import { element } from '../element.js';
import { linkTo } from './link.js';
import { runOnClick } from './panel.js';
import { fileNameOf } from './sample.js';

document.head.append(Object.assign(document.createElement('link'), { rel: 'stylesheet', href: new URL('run.css', import.meta.url).href }));

/** Returns the controls of a sample, or why it does not run on this page. */
function controls(code) {
  const group = element('div', 'run');
  const file = fileNameOf(code);
  if (file) {
    group.append(element('p', 'run-note', whyNot(code, file)));
    return group;
  }
  const button = Object.assign(element('button', 'run-button', 'Run'), { type: 'button' });
  const edit = element('a', 'run-edit', 'Edit');
  const place = element('div', '');
  runOnClick(button, place, () => code);
  linkTo(code).then(({ href }) => { edit.href = href; });
  group.append(button, edit, place);
  return group;
}

const whyNot = (code, file) =>
  /LanguageModel\.load\(/.test(code)
    ? `This sample, ${file}, does not run here: it needs the file of a language model.`
    : `This sample does not run here: it is the file ${file} of a project.`;

for (const sample of document.querySelectorAll('pre > code.language-js')) {
  sample.parentElement.after(controls(sample.textContent));
}
