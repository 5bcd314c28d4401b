// A conversation with a model from a GGUF file: `?model=` names one that the server has.

import { element } from './element.js';
import { ModelPanel, at, backendOf, megabytes, say, submitOnEnter } from './model_panel.js';

/** What was said, as the model reads it. */
let messages = [];

const panel = new ModelPanel({
  onStart() {
    messages = [];
    at('messages').replaceChildren();
    at('send').disabled = true;
    at('stop').disabled = true;
  },
  onModel(model) {
    const { info } = model;
    invite(info);
    say('fact-backend', `${backendOf(info)}, ${info.worker ? 'in a worker' : 'on this page'}`);
    say('fact-reason', info.reason);
    at('send').disabled = false;
    showMemory(model);
  },
});

/** Shows a model's memory, unless its device is lost or another model took its place. */
async function showMemory(shown) {
  const bytes = await shown.memoryBytes().catch(() => undefined);
  if (bytes !== undefined && shown === panel.model) {
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
  const asked = panel.model;
  let text = '';
  try {
    for await (const { piece, usage } of answered(asked, [...messages, message], signal)) {
      text += piece;
      item.textContent = text;
      account(usage);
    }
  } finally {
    if (asked === panel.model) {
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

at('form').addEventListener('submit', (event) => {
  event.preventDefault();
  const question = at('question').value.trim();
  if (question && panel.model && !at('send').disabled) {
    at('question').value = '';
    panel.guard((signal) => ask(question, signal));
  }
});
submitOnEnter(at('question'));
at('stop').addEventListener('click', () => panel.stop());
panel.begin();
