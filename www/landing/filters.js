// A picture before and after a filter, and the filters to choose from.

import { compare } from '../compare.js';
import { applyOn, deviceFor } from '../engine.js';
import { filters } from '../filters.js';
import { gallery } from '../gallery.js';
import { decode, planes, show, thumbnail, toPixels } from '../image.js';
import { explain, inMilliseconds } from '../words.js';

const PHOTOGRAPH = new URL('../astronaut.jpg', import.meta.url);
const FIRST = 'edges';
/** The filters that are offered; the page of filters has more. */
const OFFERED = ['edges', 'blur', 'sharpen', 'emboss'];
const SIDE_OF_THUMBNAILS = 96;

/** Filters the photograph, and again at each choice. `at` returns the page's elements by their ids. */
export async function showFilters(at) {
  const say = (text) => { at('status').textContent = text; };
  compare(at('stage'), at('split'));
  const response = await fetch(PHOTOGRAPH);
  if (!response.ok) {
    throw new Error(`The photograph cannot be loaded: ${response.status}`);
  }
  const pixels = await decode(await response.blob());
  show(at('before'), pixels);
  const device = await deviceFor('auto', say);
  const picture = planes(pixels);
  let newest;

  /** Shows the filter `name`, unless the visitor chooses another one meanwhile. */
  async function apply(name) {
    newest = name;
    const result = await applyOn('auto', picture, filters[name]);
    if (name === newest) {
      show(at('after'), toPixels(result));
      at('after').setAttribute('aria-label', `The photograph after the filter ${filters[name].label}`);
      say(`${filters[name].label} on ${described(device.info)}: three channels of ${picture.width} × ${picture.height} in ${inMilliseconds(result.milliseconds)}.`);
    }
  }

  const choices = gallery(at('gallery'), (name) => apply(name).catch((error) => say(explain(error))), OFFERED);
  choices.select(FIRST);
  await apply(FIRST);
  const small = planes(thumbnail(pixels, SIDE_OF_THUMBNAILS));
  for (const name of OFFERED) {
    choices.picture(name, toPixels(await applyOn('auto', small, filters[name])));
  }
}

const described = ({ backend, adapter, instructionSet }) => (backend === 'webgpu' ? `your GPU (${adapter})` : `SIMD (${instructionSet})`);
