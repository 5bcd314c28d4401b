// The panel with the model of a page: a file that the visitor chooses or drops, or one of the server that `?model=` names.

import { entryAt } from './entry.js';

const ENTRY = new URL('relampago/llm/index.js', import.meta.url);

export const at = (id) => document.getElementById(id);
export const megabytes = (bytes) => `${(bytes / 1e6).toFixed()} MB`;
export const say = (id, text) => {
  at(id).textContent = text;
};

/** Submits the form of a text field by Enter; Shift and Enter begin a new line. */
export function submitOnEnter(field) {
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      field.form.requestSubmit();
    }
  });
}

/** Returns where a file came from, in words. */
function origin({ source, cached }) {
  if (source === 'cache') {
    return ', from the copy in this browser';
  }
  return cached ? ', downloaded and stored in this browser' : '';
}

/** Returns the back-end of a model, in words. */
export const backendOf = ({ backend, instructionSet }) => (backend === 'gpu' ? 'GPU' : `SIMD (${instructionSet})`);

export class ModelPanel {
  /** The model, once it is loaded. */
  model;
  #onStart;
  #onModel;
  /** Cancels the work that is under way. */
  #underway = new AbortController();

  /** `onStart` is called when a model begins to load, in place of an earlier one, and `onModel` with the loaded model. */
  constructor({ onStart, onModel }) {
    this.#onStart = onStart;
    this.#onModel = onModel;
  }

  /** Listens to the visitor, and loads the model that the page's address names. */
  begin() {
    const choose = (file) => file && this.guard((signal) => this.#load(file, file.name, signal));
    at('file').addEventListener('change', ({ target }) => {
      const [file] = target.files;
      target.value = ''; // Otherwise the same file could not be chosen again.
      choose(file);
    });
    addEventListener('dragover', (event) => event.preventDefault());
    addEventListener('drop', (event) => {
      event.preventDefault();
      choose(event.dataTransfer.files[0]);
    });
    const served = new URLSearchParams(location.search).get('model');
    if (served) {
      this.guard((signal) => this.#load(served, served.split('/').at(-1), signal));
    }
  }

  /** Runs `work` in place of the work that is under way, and shows its error unless that was cancelled. */
  async guard(work) {
    this.stop();
    const { signal } = (this.#underway = new AbortController());
    at('notice').hidden = true;
    try {
      await work(signal);
    } catch (error) {
      if (!signal.aborted) {
        this.show(error);
      }
    }
  }

  /** Cancels the work that is under way. */
  stop() {
    this.#underway.abort();
  }

  show({ message }) {
    say('notice', message);
    at('notice').hidden = false;
    say('status', this.model ? at('status').textContent : 'No model is loaded.');
  }

  async #load(source, name, signal) {
    this.model?.dispose();
    this.model = undefined;
    this.#onStart();
    at('progress').value = 0;
    at('progress').hidden = false;
    try {
      const { LanguageModel } = await entryAt(ENTRY, (text) => say('status', text), signal);
      signal.throwIfAborted();
      say('status', `Loading ${name}…`);
      const onProgress = ({ loaded, total }) => {
        at('progress').value = total ? loaded / total : 0;
      };
      const model = await LanguageModel.load(source, { signal, onProgress });
      if (signal.aborted) {
        model.dispose(); // A newer load has begun.
        return;
      }
      this.model = model;
      const { info } = model;
      say('status', `${info.name || name}: ${(info.parameters / 1e6).toFixed()} million parameters, ${megabytes(info.fileBytes)}${origin(info)}.`);
      this.#onModel(model);
    } finally {
      if (!signal.aborted) {
        at('progress').hidden = true;
      }
    }
  }
}
