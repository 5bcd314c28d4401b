// The language models that the browser has stored, with links to talk to them.

import { element } from '../element.js';
import { responseAt } from '../entry.js';

const ENTRY = new URL('../relampago/llm/index.js', import.meta.url);

/** Lists the whole models in `list`, and says in `hint` if there are some. Nothing is downloaded but a script. */
export async function listModels(list, hint) {
  await responseAt(ENTRY, () => {});
  const { LanguageModel } = await import(ENTRY);
  const models = (await LanguageModel.cached()).filter(({ complete }) => complete);
  if (models.length > 0) {
    hint.textContent = 'This browser has stored the files of these models. They answer without a download:';
  }
  list.replaceChildren(...models.map(linkTo));
}

function linkTo({ url, bytes }) {
  const item = element('li', '');
  const link = element('a', '', decodeURIComponent(new URL(url, location.href).pathname.split('/').at(-1)));
  link.href = `talk.html?model=${encodeURIComponent(url)}`;
  item.append(link, ` (${(bytes / 1e6).toFixed()} MB)`);
  return item;
}
