// A button that runs a sample, and the place below it where the sample's output appears.

import { element } from '../element.js';
import { drawPlan, summary } from '../plan.js';
import { run } from './runner.js';

/**
 * Makes `button` run the sample that `code` returns, show its output in `place`, and stop it while it runs.
 * @param {HTMLButtonElement} button
 * @param {HTMLElement} place
 * @param {() => string} code
 * @param {(outcome: { error?: { message: string, line?: number } }) => void} [done] Hears how the sample ended.
 */
export function runOnClick(button, place, code, done = () => {}) {
  const name = button.textContent;
  place.setAttribute('role', 'status');
  place.classList.add('run-output');
  let running;
  button.addEventListener('click', async () => {
    if (running) {
      running.abort();
      return;
    }
    running = new AbortController();
    button.textContent = 'Stop';
    done(await show(place, code(), running.signal));
    button.textContent = name;
    running = undefined;
  });
}

/** Runs a sample and shows what it prints and exports. Returns its outcome. */
async function show(place, code, signal) {
  const state = element('p', 'run-state', 'Running…');
  place.replaceChildren(state);
  place.dataset.state = 'running';
  const add = (...nodes) => state.before(...nodes);
  try {
    const outcome = await run(code, {
      signal,
      show: (text) => { state.textContent = text; },
      output: (level, text) => add(element('pre', `run-line run-${level}`, text)),
    });
    add(...(outcome.results ?? []).map(resultOf));
    if (outcome.error) {
      add(errorOf(outcome.error));
    }
    return end(place, state, outcome);
  } catch (error) {
    const stopped = signal.aborted;
    add(stopped ? element('p', 'run-line', 'Stopped.') : errorOf(error));
    return end(place, state, stopped ? {} : { error });
  }
}

function end(place, state, outcome) {
  state.textContent = 'The sample ran, and printed nothing.';
  state.hidden = place.childElementCount > 1;
  place.dataset.state = outcome.error ? 'failed' : 'done';
  return outcome;
}

const errorOf = ({ message, line }) => element('pre', 'run-line run-error', line ? `line ${line}: ${message}` : message);

function resultOf({ name, text, plan }) {
  const result = element('div', 'run-result');
  result.append(element('span', 'run-name', name));
  if (plan) {
    const list = element('ol', 'plan');
    drawPlan(list, plan, []);
    result.append(element('p', 'hint', summary(plan, 'The plan')), list);
  } else {
    result.append(element('pre', 'run-line', text));
  }
  return result;
}
