// A conversation with a model from a GGUF file: `?model=` names one that the server has.

import { element } from './element.js';
import { entryAt } from './entry.js';

const ENTRY = new URL('relampago/llm/index.js', import.meta.url);

const at = (id) => document.getElementById(id);
const megabytes = (bytes) => `${(bytes / 1e6).toFixed()} MB`;
const say = (id, text) => {
  at(id).textContent = text;
};

/** What is said of where a file came from. */
function origin({ source, cached }) {
  if (source === 'cache') {
    return ', from the copy in this browser';
  }
  return cached ? ', downloaded and stored in this browser' : '';
}

let model;
/** What was said, as the model reads it. */
let messages = [];
/** Cancels the answer, or the loading, that is under way. */
let underway = new AbortController();

async function load(source, name, signal) {
  model?.dispose();
  model = undefined;
  messages = [];
  at('messages').replaceChildren();
  at('send').disabled = true;
  at('stop').disabled = true;
  at('progress').value = 0;
  at('progress').hidden = false;
  try {
    const { LanguageModel } = await entryAt(ENTRY, (text) => say('status', text), signal);
    signal.throwIfAborted();
    say('status', `Loading ${name}…`);
    const onProgress = ({ loaded, total }) => {
      at('progress').value = total ? loaded / total : 0;
    };
    const loaded = await LanguageModel.load(source, { signal, onProgress });
    if (signal.aborted) {
      loaded.dispose(); // A newer load has begun.
      return;
    }
    model = loaded;
    const { info } = model;
    invite(info);
    say('status', `${info.name || name}: ${(info.parameters / 1e6).toFixed()} million parameters, ${megabytes(info.fileBytes)}${origin(info)}.`);
    say('fact-backend', `${info.backend === 'gpu' ? 'GPU' : `SIMD (${info.instructionSet})`}, ${info.worker ? 'in a worker' : 'on this page'}`);
    say('fact-reason', info.reason);
    at('send').disabled = false;
    showMemory(model);
  } finally {
    if (!signal.aborted) {
      at('progress').hidden = true;
    }
  }
}

/** Shows a model's memory, unless its device is lost or another model took its place. */
async function showMemory(shown) {
  const bytes = await shown.memoryBytes().catch(() => undefined);
  if (bytes !== undefined && shown === model) {
    say('fact-memory', megabytes(bytes));
  }
}

/** Says what the model does with a text: one without a chat template continues it. */
function invite({ hasChatTemplate }) {
  say('continues', hasChatTemplate ? '' : 'This model has no chat template. It continues your text, and does not read what came before.');
  at('continues').hidden = hasChatTemplate;
  const label = hasChatTemplate ? 'Your message' : 'Text to continue';
  say('asked', label);
  at('question').placeholder = label;
}

function add({ role, content }) {
  const item = element('li', role, content);
  at('messages').append(item);
  return item;
}

/** How often an answer goes on after its device was lost. */
const MOST_LOSSES = 3;
/** The errors of a model that has to be loaded anew; a reload that was stopped leaves one that is disposed of. */
const LOSSES = ['DEVICE_LOST', 'DISPOSED'];

/** Answers, or continues the last message; where the device is lost, loads the model anew and goes on after the tokens so far. */
async function* answered(asked, conversation, signal) {
  let after = [];
  for (let losses = 0; ; losses++) {
    const options = { signal, after };
    const answer = asked.info.hasChatTemplate ? asked.chat(conversation, options) : asked.complete(conversation.at(-1).content, options);
    try {
      for await (const piece of answer) {
        yield { piece, usage: answer.usage };
      }
      return;
    } catch (error) {
      if (!LOSSES.includes(error.code) || losses === MOST_LOSSES) {
        throw error;
      }
      after = answer.tokens;
      await asked.reload(undefined, { signal });
    }
  }
}

async function ask(question, signal) {
  const message = { role: 'user', content: question };
  add(message);
  const item = add({ role: 'assistant', content: '…' });
  at('send').disabled = true;
  at('stop').disabled = false;
  const asked = model;
  let text = '';
  try {
    for await (const { piece, usage } of answered(asked, [...messages, message], signal)) {
      text += piece;
      item.textContent = text;
      account(usage);
    }
  } finally {
    if (asked === model) {
      at('stop').disabled = true;
      at('send').disabled = false;
      // What got no answer is not part of the conversation, and can be asked again.
      if (text) {
        messages.push(message, { role: 'assistant', content: text });
      } else {
        at('question').value ||= question;
      }
      item.textContent = text || '(no answer)';
      say('spoken', text);
      showMemory(asked);
    }
  }
}

function account({ time_to_first_token_ms, tokens_per_second, completion_tokens }) {
  say('fact-first', `${time_to_first_token_ms.toFixed()} ms`);
  say('fact-speed', tokens_per_second ? `${tokens_per_second.toFixed(1)} tokens/s, ${completion_tokens} tokens` : '…');
}

/** Runs `work` in place of what is under way, and shows what goes wrong unless that was cancelled. */
async function guard(work) {
  underway.abort();
  const { signal } = (underway = new AbortController());
  at('notice').hidden = true;
  try {
    await work(signal);
  } catch (error) {
    if (!signal.aborted) {
      say('notice', error.message);
      at('notice').hidden = false;
      say('status', model ? at('status').textContent : 'No model is loaded.');
    }
  }
}

const choose = (file) => file && guard((signal) => load(file, file.name, signal));

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
at('form').addEventListener('submit', (event) => {
  event.preventDefault();
  const question = at('question').value.trim();
  if (question && model && !at('send').disabled) {
    at('question').value = '';
    guard((signal) => ask(question, signal));
  }
});
at('question').addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    at('form').requestSubmit();
  }
});
at('stop').addEventListener('click', () => underway.abort());

const served = new URLSearchParams(location.search).get('model');
if (served) {
  guard((signal) => load(served, served.split('/').at(-1), signal));
}
