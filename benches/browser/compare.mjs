// How the package does beside the fastest of the others, if any of them has a time.

export function comparison({ contestants }) {
  const timed = contestants.filter(({ median }) => median !== undefined);
  const ours = timed.filter(({ ours }) => ours);
  const [best] = timed.filter(({ ours }) => !ours).sort((a, b) => a.median - b.median);
  const ratios = best ? ours.map(({ name, median }) => ({ name, ratio: best.median / median })) : [];
  return { best: best?.name, ratios };
}
