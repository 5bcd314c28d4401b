// ONNX models, written as protocol buffers. The numbers are the fields' in onnx.proto.

const IR_VERSION = 9;
const OPSET = 20;
const FLOAT = 1;

// `nodes` are [operator, inputs, output]; `constants` are [name, values, shape].
export function model(nodes, { inputs, output, constants = [] }) {
  const graph = [
    ...nodes.map((node) => field(1, encodeNode(node))),
    field(2, 'graph'),
    ...constants.map((constant) => field(5, encodeConstant(constant))),
    ...inputs.map(([name, shape]) => field(11, encodeValue(name, shape))),
    field(12, encodeValue(output)),
  ];
  return Uint8Array.from([...field(1, IR_VERSION), ...field(7, graph.flat()), ...field(8, field(2, OPSET))]);
}

function encodeNode([operator, inputs, output]) {
  return [...inputs.flatMap((name) => field(1, name)), ...field(2, output), ...field(4, operator)];
}

function encodeConstant([name, values, shape]) {
  const raw = new Uint8Array(values.buffer);
  return [...shape.flatMap((side) => field(1, side)), ...field(2, FLOAT), ...field(8, name), ...field(9, raw)];
}

function encodeValue(name, shape) {
  const dimensions = shape?.flatMap((side) => field(1, field(1, side)));
  const tensor = [...field(1, FLOAT), ...(dimensions ? field(2, dimensions) : [])];
  return [...field(1, name), ...field(2, field(1, tensor))];
}

// A number is a varint; a string, bytes and a message have their length before them.
function field(number, value) {
  if (typeof value === 'number') {
    return [...varint(number << 3), ...varint(value)];
  }
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value;
  return [...varint((number << 3) | 2), ...varint(bytes.length), ...bytes];
}

function varint(value) {
  return value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];
}
