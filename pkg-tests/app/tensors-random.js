// Random tensors beside Philox4x32-10 in BigInt, from its definition. No code in common with the package.

const WORD = (1n << 32n) - 1n;

/** The four numbers of a counter. */
function block(seed, counter) {
  let key = [BigInt(seed) & WORD, BigInt(seed) >> 32n];
  let words = [0n, 32n, 64n, 96n].map((shift) => (BigInt(counter) >> shift) & WORD);
  for (let round = 0; round < 10; round++) {
    const [ab, cd] = [words[0] * 0xd2511f53n, words[2] * 0xcd9e8d57n];
    words = [(cd >> 32n) ^ words[1] ^ key[0], cd & WORD, (ab >> 32n) ^ words[3] ^ key[1], ab & WORD];
    key = [(key[0] + 0x9e3779b9n) & WORD, (key[1] + 0xbb67ae85n) & WORD];
  }
  return words.map(Number);
}

const uniform = (word) => (word >>> 8) / 2 ** 24;

/** Two normals of two words, with the host's functions. */
const normals = (a, b) => {
  const [radius, angle] = [Math.sqrt(-2 * Math.log((a + 1) / 2 ** 32)), (2 * Math.PI * b) / 2 ** 32];
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
};

const blocks = (seed, length) => Array.from({ length: length / 4 }, (_, counter) => block(seed, counter));

/** Differences from the oracle, moments, and what is the same for the same seed. */
export async function random(device) {
  const length = 4096;
  const seeds = [0, 1, 2 ** 32 + 7, Number.MAX_SAFE_INTEGER];
  let [uniforms, furthest] = [0, 0];
  for (const seed of seeds) {
    const [u, n] = await device.read([device.random.uniform([length], { seed }), device.random.normal([64, 64], { seed })]);
    const words = blocks(seed, length);
    uniforms += words.flat().filter((word, i) => uniform(word) !== u[i]).length;
    const right = words.flatMap(([a, b, c, d]) => [...normals(a, b), ...normals(c, d)]);
    furthest = Math.max(furthest, ...right.map((value, i) => Math.abs(value - n[i]) / Math.max(Math.abs(value), 1e-6)));
  }
  const bits = new Uint32Array((await device.random.normal([4], { seed: 1 }).data()).buffer);
  const range = await device.random.uniform([10_000], { seed: 3, min: -2, max: 5 }).data();
  const narrow = await device.random.uniform([10_000], { seed: 3, min: 1, max: 1 + 2 ** -20 }).data();
  const scaled = device.random.normal([100_000], { seed: 4, mean: 10, deviation: 2 });
  const mean = await scaled.mean().item();
  const deviation = Math.sqrt(await scaled.sub(mean).square().mean().item());
  const [one, other] = await device.read([device.random.uniform([8]), device.random.uniform([8])]);
  return {
    uniforms,
    isNear: furthest < 1e-6,
    bits: [...bits],
    range: [Math.min(...range) >= -2, Math.max(...range) < 5, Math.max(...narrow) < 1 + 2 ** -20],
    moments: [Math.abs(mean - 10) < 0.05, Math.abs(deviation - 2) < 0.05],
    differ: String(one) !== String(other),
  };
}
