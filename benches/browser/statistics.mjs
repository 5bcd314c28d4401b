// The middle of measurements, and how far they spread.

export function quartiles(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const [lower, median, upper] = [0.25, 0.5, 0.75].map((part) => quantile(sorted, part));
  return { lower, median, upper };
}

export const median = (values) => quartiles(values).median;

function quantile(sorted, part) {
  const place = part * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return below + (above - below) * (place % 1);
}
