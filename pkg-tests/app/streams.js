// Streams of a program's runs: they return each result as soon as it is computed, and they end their sources.

/** Returns what streams of different sources do; nothing here waits for a time. */
export async function streams(device) {
  const batch = device.batch();
  const program = await batch.compile([batch.scale(batch.placeholder(1), 2)]);
  const args = (value) => [Float32Array.of(value)];
  const log = [];
  const collect = async (source, onValue = () => {}) => {
    const values = [];
    try {
      for await (const [result] of program.stream(source)) {
        values.push(result[0]);
        if (onValue(result[0])) {
          break;
        }
      }
    } catch (error) {
      values.push(error.code ?? error.message);
    }
    return values;
  };
  const logged = async function* () {
    try {
      yield* [args(1), args(2), args(3), args(4)];
    } finally {
      log.push('ended');
    }
  };
  const failing = async function* () {
    yield args(1);
    yield args(2);
    throw new Error('the source');
  };
  // Each yields only after the result before.
  let told;
  const answering = async function* () {
    for (let value = 1; value < 4; value++) {
      const heard = new Promise((resolve) => (told = resolve));
      yield args(value);
      await heard;
    }
  };
  // It never answers again, which whoever stops does not wait for.
  const silent = async function* () {
    yield args(1);
    await new Promise(() => {});
  };
  return {
    list: await collect([args(1), args(2), args(3)]),
    promises: await collect([Promise.resolve(args(1))]),
    none: await collect([]),
    failing: await collect(failing()),
    answering: await collect(answering(), () => void told()),
    stopped: [await collect(logged(), (value) => value === 4), [...log]],
    silent: await collect(silent(), () => true),
    wrong: [await collect([args(1), [1], args(3)]), await collect(5)],
  };
}
