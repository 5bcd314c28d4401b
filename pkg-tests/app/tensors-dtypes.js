// Types of elements, and images.

const classOf = (values) => Object.prototype.toString.call(values).slice(8, -1);

/** The classes and values of results of each type. */
export async function dtypes({ Tensor }, device) {
  const x = device.tensor([[1, 5, 2], [7, 0, 7]]);
  const indices = x.argmax(1);
  const truths = x.greater(1);
  const special = device.tensor([1, NaN, Infinity, -Infinity, 3.4028234663852886e38, -0]);
  const results = {
    indices, truths, top: x.topK(2).indices, any: truths.any(1), not: truths.not(), moved: indices.reshape([1, 2]).transpose(),
    joined: truths.concat(truths), stacked: Tensor.stack([indices, indices]), mixed: Tensor.concat([indices, indices.add(1)]),
    again: device.tensor(await indices.data()), bytes: device.tensor(Uint8Array.of(1, 2), [2, 1]), picked: x.gather(Uint32Array.of(1), 1),
    gathered: x.gather(Float32Array.of(1, 0)),
    sum: truths.sum(), hot: indices.oneHot(3), none: device.zeros([0, 3]).argmax(1),
    nan: special.isNan(), finite: special.isFinite(), fused: special.abs().sqrt().sub(Infinity).isNan(),
  };
  const described = {};
  for (const [name, tensor] of Object.entries(results)) {
    const values = await tensor.data();
    described[name] = `${tensor.dtype} ${classOf(values)} ${[...values]}`;
  }
  await truths.run();
  return {
    described,
    again: classOf(await truths.data()),
    items: [await x.any().item(), await x.greater(9).any().item(), await x.argmax().item(), await x.sum().item()],
    nested: await truths.array(),
    read: (await device.read([indices, truths, x])).map(classOf),
  };
}

/** Bytes of an image that go into a tensor and back, and those of other shapes. */
export async function images(device) {
  const [width, height] = [16, 16];
  const data = Uint8ClampedArray.from({ length: width * height * 4 }, (_, i) => i % 256);
  const image = globalThis.ImageData ? new ImageData(data, width, height) : { data, width, height };
  const pixels = device.fromImage(image);
  const planes = device.fromImage(image, { layout: 'planes' });
  const same = (other) => other.width === width && other.height === height && String(other.data) === String(data);
  const grey = await device.tensor([[0, 0.5], [1, 2], [NaN, -Infinity]]).toImageData();
  const rgb = await device.tensor([[[-1, 0, 1]]]).toImageData();
  // 15 pixels of three channels leave a word with one byte.
  const odd = await device.tensor(Float32Array.from({ length: 45 }, (_, i) => i / 255), [3, 3, 5]).toImageData({ layout: 'planes' });
  // From its second use on an image is kept as numbers; results stay what they are, and nothing is planned again.
  const again = [];
  for (let use = 0; use < 5; use++) {
    again.push(same(await planes.add(0.001).toImageData({ layout: 'planes' })));
    again.push(device.tensors.planned);
  }
  const moved = await planes.permute([1, 2, 0]).sub(pixels).abs().max().item();
  return {
    shapes: [pixels.shape, planes.shape],
    same: [same(await pixels.toImageData()), same(await planes.toImageData({ layout: 'planes' }))],
    moved,
    odd: [...odd.data.slice(0, 4), ...odd.data.slice(-4)],
    again: again.filter((one) => one !== true).slice(-2).map((planned, _, [first]) => planned - first),
    unequal: again.filter((one) => one === false).length,
    grey: [...grey.data],
    rgb: [...rgb.data],
    isImageData: !globalThis.ImageData || grey instanceof ImageData,
  };
}
