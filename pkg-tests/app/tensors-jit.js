// Functions that device.jit compiles, and stacks of errors.

/** Calls of a function that is compiled, its results, and what it planned. */
export async function jit(device) {
  let recorded = 0;
  const offset = device.tensor([10, 20]);
  const step = device.jit((x, factor) => {
    recorded += 1;
    const scaled = x.mul(factor).add(offset).add(device.tensor([1, 1]));
    return { scaled, both: [scaled.sum(), x], largest: scaled.argmax() };
  });
  const before = device.tensors.planned;
  const all = [];
  for (let factor = 1; factor <= 5; factor++) {
    const { scaled, both: [sum, same], largest } = await device.scope(() => step(device.tensor([1, 2]), factor));
    all.push([...await scaled.data(), await sum.item(), ...await same.data(), ...await largest.data()].join());
  }
  const once = [recorded, device.tensors.planned - before];
  await step(device.ones([3, 2]), 2);
  // What is not computed yet is computed first.
  const nested = await step(device.tensor([1, 2]).mul(3), device.tensor(2));
  const chained = await step(nested.scaled, 0);
  return { all, once, recorded, nested: [...await nested.scaled.data()], chained: [...await chained.scaled.data()] };
}

/** The codes and messages of mistakes. */
export async function jitMistakes({ GpuDevice }, device) {
  const other = await GpuDevice.create({ backend: 'simd' });
  const messageOf = async (f, ...args) => {
    try {
      return `nothing thrown, but ${await device.jit(f)(...args)}`;
    } catch ({ code, message }) {
      return `${code} ${message}`;
    }
  };
  const x = device.tensor([1, 2]);
  const gone = device.tensor([1]);
  gone.dispose();
  return [
    await messageOf(1),
    await messageOf(async (a) => a, x),
    // It rejects, too, which must not end the process.
    await messageOf((a) => a.data(), x),
    await messageOf((a) => [a, 1], x),
    await messageOf((a) => a, [1, 2]),
    await messageOf((a) => a, gone),
    await messageOf((a) => {
      a.data().catch(() => {});
      return a.add(gone);
    }, x),
    await messageOf((a) => a.matmul(1), x),
    await messageOf((a) => {
      const all = [a];
      all.push({ all });
      return all;
    }, x),
    await messageOf(() => other.tensor([1])),
  ];
}

/** Whether the first line of a stack is the caller's, where engines can cut stacks. */
export async function stacks(relampago, device) {
  const x = device.tensor([1, 2]);
  const callers = {
    method: function calledHere() {
      return x.add(device.tensor([1, 2, 3]));
    },
    device: function calledHere() {
      return device.zeros([-1]);
    },
    random: function calledHere() {
      return device.random.normal([2], { sed: 1 });
    },
    item: function calledHere() {
      return x.item();
    },
    stack: function calledHere() {
      return relampago.Tensor.stack([x, device.zeros([3])]);
    },
    jit: function calledHere() {
      return device.jit(() => 1)(x);
    },
  };
  if (device.info.worker) {
    callers.operation = function calledHere() {
      return device.matmul(new Float32Array(3), new Float32Array(3), 2, 2, 2);
    };
  }
  const first = {};
  for (const [name, call] of Object.entries(callers)) {
    try {
      await call();
    } catch (error) {
      const [, line] = error.stack.split('\n');
      first[name] = line.includes('calledHere');
    }
  }
  return first;
}
