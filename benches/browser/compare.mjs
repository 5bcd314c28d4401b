// How the package does beside the fastest of the others.

export function comparison({ contestants }) {
  const timed = contestants.filter(({ median }) => median !== undefined);
  const ours = timed.filter(({ ours }) => ours);
  const best = timed.filter(({ ours }) => !ours).reduce((a, b) => (b.median < a.median ? b : a));
  const ratios = ours.map(({ name, median }) => ({ name, ratio: best.median / median }));
  return { best: best.name, ratios };
}
