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
  layer: [['Conv', ['x0', 'x1'], 'y']],
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
  mlp: [
    ['MatMul', ['x0', 'x1'], 'hidden'],
    ['Gelu', ['hidden'], 'bent'],
    ['MatMul', ['bent', 'x2'], 'y'],
  ],
};

// The shapes that ort wants a row's inputs in.
export const dimensions = ({ op, shapes }) => op === 'conv' ? shapes.map((shape) => [1, 1, ...shape]) : shapes;

// A row's model; `weights` are the values of its last inputs, which are then part of it.
export function modelOf(row, weights = []) {
  const shapes = dimensions(row).map((shape, i) => [`x${i}`, shape]);
  const inputs = shapes.slice(0, shapes.length - weights.length);
  const constants = shapes.slice(inputs.length).map(([name, shape], i) => [name, weights[i], shape]);
  if (row.op === 'chain') {
    constants.push(['scale', Float32Array.of(SCALE), []]);
  }
  return model(nodes[row.op], { inputs, output: 'y', constants });
}
