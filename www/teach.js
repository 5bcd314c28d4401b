// Teaches a model from a GGUF file by examples: `?model=` names one that the server has.

import { ModelPanel, at, backendOf, say, submitOnEnter } from './model_panel.js';
import { ExamplesTable } from './teach/examples_table.js';
import { LossChart } from './teach/loss_chart.js';

/** The most tokens of an answer. */
const MOST = 64;
const SAVES = ['save-gguf', 'save-peft', 'save-config'];

const table = new ExamplesTable(at('examples'));
const chart = new LossChart({ image: at('losses'), line: at('loss-line'), held: at('held-line'), range: at('loss-range') });

/** The adapter that was learned last. */
let adapter;
/** The tuning that runs: the model that learns, and whether the visitor has stopped it. */
let running;

const panel = new ModelPanel({
  onStart() {
    running = undefined;
    setAdapter(undefined);
    chart.clear();
    ['start', 'stop', 'ask'].forEach((id) => { at(id).disabled = true; });
    ['before', 'after'].forEach((id) => say(id, '…'));
    say('place', '');
  },
  onModel({ info }) {
    at('start').disabled = false;
    at('ask').disabled = false;
    const { hasChatTemplate } = info;
    say('place', `It learns on ${info.backend === 'gpu' ? 'the ' : ''}${backendOf(info)}. ${hasChatTemplate ? '' : 'This model has no chat template: it learns and continues texts, a question with its answer in the next line.'}`);
  },
});

function setAdapter(learned) {
  adapter?.dispose();
  adapter = learned;
  SAVES.forEach((id) => { at(id).disabled = !learned; });
}

/** Returns the example of a question and an answer. */
const exampleFor = ({ info }) => ([question, answer]) => (info.hasChatTemplate
  ? [{ role: 'user', content: question }, { role: 'assistant', content: answer }]
  : `${question}\n${answer}`);

const answerOf = (model, question, options) => (model.info.hasChatTemplate
  ? model.chat([{ role: 'user', content: question }], options)
  : model.complete(`${question}\n`, { stop: '\n', ...options }));

/** The settings of the form. */
const settings = () => ({
  epochs: at('epochs').valueAsNumber,
  learningRate: at('learning-rate').valueAsNumber,
  rank: at('rank').valueAsNumber,
  alpha: 2 * at('rank').valueAsNumber,
  heldBack: at('held-back').valueAsNumber / 100,
  targets: at('targets').value.split(' '),
});

function showStep(progress) {
  chart.add(progress);
  const { step, steps, loss, tokensPerSecond, secondsLeft } = progress;
  say('progress-of-steps', `Step ${step} of ${steps}: loss ${loss.toFixed(3)}, ${tokensPerSecond.toFixed()} tokens/s, ${secondsLeft.toFixed()} s left.`);
}

async function teach() {
  const { model } = panel;
  const pairs = table.pairs;
  if (pairs.length === 0) {
    panel.show({ message: 'There is no example yet: write a question and its answer.' });
    return;
  }
  const own = (running = { isStopped: false });
  at('start').disabled = true;
  at('stop').disabled = false;
  at('notice').hidden = true;
  setAdapter(undefined);
  chart.clear();
  say('progress-of-steps', 'The model is loaded once more, to learn…');
  const onStep = (progress) => {
    if (own === running) {
      showStep(progress);
    }
    return !own.isStopped;
  };
  try {
    const learned = await model.tune(pairs.map(exampleFor(model)), { ...settings(), onStep });
    if (own === running) {
      say('progress-of-steps', `${own.isStopped ? 'Stopped' : 'Learned'} after ${learned.losses.length} steps: the loss went from ${learned.losses[0].toFixed(3)} to ${learned.losses.at(-1).toFixed(3)}.`);
      setAdapter(learned);
    }
  } catch (error) {
    if (own === running) {
      say('progress-of-steps', 'Nothing was learned.');
      panel.show(error);
    }
  } finally {
    if (own === running) {
      running = undefined;
      at('start').disabled = false;
      at('stop').disabled = true;
    }
  }
  if (adapter && model === panel.model) {
    at('question').value ||= pairs[0][0];
    panel.guard((signal) => ask(at('question').value, signal));
  }
}

/** Answers a question without the adapter and with it. */
async function ask(question, signal) {
  const { model } = panel;
  const spoken = [];
  for (const [id, name, lora] of [['before', 'Before', []], ['after', 'After', adapter ?? []]]) {
    say(id, '…');
    if (id === 'after' && !adapter) {
      say(id, 'Teach the model first.');
      break;
    }
    const answer = answerOf(model, question, { signal, lora, max_tokens: MOST, seed: 0 });
    let text = '';
    for await (const piece of answer) {
      text += piece;
      say(id, text);
    }
    say(id, text || '(no answer)');
    spoken.push(`${name}: ${text}`);
  }
  say('spoken', spoken.join('. '));
}

/** Has the browser save a file. */
function save(name, content) {
  const url = URL.createObjectURL(new Blob([content]));
  Object.assign(document.createElement('a'), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

at('add').addEventListener('click', () => table.add().focus());
at('settings').addEventListener('submit', (event) => {
  event.preventDefault();
  if (panel.model && !running) {
    teach();
  }
});
at('stop').addEventListener('click', () => {
  running.isStopped = true;
  at('stop').disabled = true;
  say('progress-of-steps', 'Stopping after this step…');
});
at('form').addEventListener('submit', (event) => {
  event.preventDefault();
  const question = at('question').value.trim();
  if (question && panel.model) {
    panel.guard((signal) => ask(question, signal));
  }
});
submitOnEnter(at('question'));
at('save-gguf').addEventListener('click', () => save('adapter.gguf', adapter.toGguf()));
at('save-peft').addEventListener('click', () => save('adapter_model.safetensors', adapter.toSafetensors()));
at('save-config').addEventListener('click', () => save('adapter_config.json', adapter.adapterConfig()));
chart.clear();
panel.begin();
