// The models that onnxruntime-web runs.

import { SCALE } from '../rows.js';
import { model } from '../onnx.js';

const nodes = {
  relu: [['Relu', ['x0'], 'y']],
  gelu: [['Gelu', ['x0'], 'y']],
  sigmoid: [['Sigmoid', ['x0'], 'y']],
  softmax: [['Softmax', ['x0'], 'y']],
  sum: [['ReduceSum', ['x0'], 'y']],
  matmul: [['MatMul', ['x0', 'x1'], 'y']],
  conv: [['Conv', ['x0', 'x1'], 'y']],
  chain: [
    ['Relu', ['x0'], 'positive'],
    ['Mul', ['positive', 'scale'], 'scaled'],
    ['Add', ['scaled', 'x1'], 'y'],
  ],
  perceptron: [
    ['Gemm', ['x0', 'x1', 'x2'], 'hidden'],
    ['Relu', ['hidden'], 'positive'],
    ['Gemm', ['positive', 'x3', 'x4'], 'y'],
  ],
};

// The shapes that ort wants a row's inputs in.
export const dimensions = ({ op, shapes }) => op === 'conv' ? shapes.map((shape) => [1, 1, ...shape]) : shapes;

export function modelOf(row) {
  return model(nodes[row.op], {
    inputs: dimensions(row).map((shape, i) => [`x${i}`, shape]),
    output: 'y',
    constants: row.op === 'chain' ? [['scale', SCALE]] : [],
  });
}
