// The line of the losses, drawn as they arrive.

const WIDTH = 100;
const HEIGHT = 40;
const MARGIN = 2;

export class LossChart {
  #parts;
  #losses = [];
  /** The losses of held-back examples, with the steps after which they were measured. */
  #held = [];

  /** `parts` are the image, its lines, and the text below it. */
  constructor(parts) {
    this.#parts = parts;
  }

  clear() {
    this.#losses = [];
    this.#held = [];
    this.#draw(1);
  }

  /** Adds the progress of a step. */
  add({ loss, steps, heldBackLoss }) {
    this.#losses.push(loss);
    if (heldBackLoss !== undefined) {
      this.#held.push([this.#losses.length - 1, heldBackLoss]);
    }
    this.#draw(steps);
  }

  #draw(steps) {
    const all = [...this.#losses, ...this.#held.map(([, loss]) => loss)];
    const highest = Math.max(...all, Number.MIN_VALUE);
    const point = ([step, loss]) => {
      const x = MARGIN + (step / Math.max(1, steps - 1)) * (WIDTH - 2 * MARGIN);
      const y = MARGIN + (1 - loss / highest) * (HEIGHT - 2 * MARGIN);
      return `${x.toFixed(2)},${y.toFixed(2)}`;
    };
    const { image, line, held, range } = this.#parts;
    line.setAttribute('points', [...this.#losses.entries()].map(point).join(' '));
    held.setAttribute('points', this.#held.map(point).join(' '));
    const [first, last] = [this.#losses[0], this.#losses.at(-1)].map((loss) => loss?.toFixed(3));
    const text = first === undefined ? 'no steps yet' : `from ${first} to ${last} in ${this.#losses.length} steps`;
    const heldText = this.#held.length > 0 ? `; of held-back examples (dashed) ${this.#held.at(-1)[1].toFixed(3)}` : '';
    image.setAttribute('aria-label', `The loss of each step: ${text}${heldText}`);
    range.textContent = first === undefined ? '' : `Loss ${text}${heldText}. The lower edge is 0, the upper one ${highest.toFixed(3)}.`;
  }
}
