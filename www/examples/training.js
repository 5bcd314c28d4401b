import init, { GpuDevice } from 'relampago';
import { adam } from 'relampago/train';

await init();
const device = await GpuDevice.create();

// A net of two layers learns the exclusive or.
const learn = device.valueAndGradients(({ w1, b1, w2, b2 }, x, labels) =>
    x.matmul(w1).add(b1).tanh().matmul(w2).add(b2).crossEntropy(labels));
const optimizer = adam({ learningRate: 0.05 });
const step = device.jit((parameters, state, x, labels) => {
    const { value, gradients } = learn(parameters, x, labels);
    return { ...optimizer.step(parameters, gradients, state), loss: value };
});

const x = device.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]);
const labels = device.tensor(Uint32Array.of(0, 1, 1, 0));
let parameters = {
    w1: device.random.normal([2, 8], { seed: 1 }), b1: device.zeros([8]),
    w2: device.random.normal([8, 2], { seed: 2 }), b2: device.zeros([2]),
};
let state = optimizer.init(parameters);
let loss = device.tensor(0);
for (let i = 1; i <= 100; i++) {
    ({ parameters, state, loss } = await step(parameters, state, x, labels));
    if (i % 20 === 0) {
        console.log(`step ${i}: loss ${(await loss.item()).toFixed(3)}`);
    }
}

const { w1, b1, w2, b2 } = parameters;
const answers = x.matmul(w1).add(b1).tanh().matmul(w2).add(b2).argmax(1);
console.log(String(await answers.data())); // prints: 0,1,1,0
