// The first page: a filter on a picture, a sample to edit, the models that this browser has.
//
// For checks, `window.relampagoLanding` offers
//   filtered    a promise of the first filtered picture
//   models      a promise of the list of models

import { codeField } from './code.js';
import { EXAMPLES, codeOf } from './examples.js';
import { showFilters } from './landing/filters.js';
import { listModels } from './landing/models.js';
import { linkTo } from './run/link.js';
import { runOnClick } from './run/panel.js';
import { explain } from './words.js';

const at = (id) => document.getElementById(id);

/** Shows what went wrong in one part of the page; the others stay. */
async function guard(work) {
  try {
    return await work;
  } catch (error) {
    at('notice').textContent = explain(error);
    at('notice').hidden = false;
    return undefined;
  }
}

async function showSample() {
  const field = codeField(at('code'), 'A sample with tensors', () => at('run').click(), () => setLink());
  const setLink = async () => {
    at('edit').href = await linkTo(field.value);
  };
  const markLine = ({ error }) => field.mark(error?.line ? [error] : []);
  runOnClick(at('run'), at('output'), () => field.value, markLine);
  field.value = await codeOf(EXAMPLES[0]);
  await setLink();
}

const filtered = guard(showFilters(at));
guard(showSample());
// The picture comes first.
const models = filtered.then(() => guard(listModels(at('models'), at('models-hint'))));

globalThis.relampagoLanding = { filtered, models };
