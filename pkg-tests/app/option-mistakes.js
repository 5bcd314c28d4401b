// Options of methods that have none but `signal`, or that and `into`.

/** For each method what its errors say: of right options, of one that does not exist, and of a signal in place of options. */
export async function optionMistakes({ TensorView }, device) {
  const one = Float32Array.of(1);
  const view = new TensorView([1, 1]);
  const batch = device.batch();
  const program = await batch.compile([batch.relu(batch.placeholder(1))]);
  const cache = device.matmulCache();
  await cache.insert('one', one, { k: 1, n: 1 });
  const methods = {
    upload: (options) => device.upload(one, options),
    matmulView: (options) => device.matmulView(view, one, view, one, options),
    tiledReduce2d: (options) => device.tiledReduce2d('sum', one, 1, 1, options),
    tiledSum2d: (options) => device.tiledSum2d(one, 1, 1, options),
    tiledReducePartial: (options) => device.tiledReducePartial('sum', one, 1, 1, options),
    compile: (options) => batch.compile([batch.placeholder(1)], options),
    execute: (options) => device.batch().execute(options),
    insert: (options) => cache.insert('two', one, { k: 1, n: 1 }, options),
    insertBlocks: (options) => cache.insertBlocks('three', new Uint8Array(34), { k: 32, n: 1, format: 'q8_0' }, options),
    matmulCached: (options) => cache.matmulCached('one', one, 1, options),
    run: (options) => program.run([one], options),
    runN: (options) => program.runN([one], 2, [], options),
    time: (options) => program.time([one], options),
    read: (options) => program.read([one], options),
    stream: (options) => program.stream([[one]], options).next(),
    relu: (options) => device.relu(one, options),
  };
  const messages = {};
  for (const [name, call] of Object.entries(methods)) {
    messages[name] = [];
    for (const options of [{ signal: undefined }, { sginal: 1 }, AbortSignal.abort()]) {
      messages[name].push(await Promise.resolve().then(() => call(options)).then(() => 'no error', ({ code, message }) => `${code}: ${message}`));
    }
  }
  return messages;
}
