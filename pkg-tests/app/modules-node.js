// Which module engines get, by what their vector instructions give.

import { moduleUrl } from 'relampago';

const choice = () => {
  try {
    return moduleUrl().pathname.split('/').pop();
  } catch ({ code }) {
    return code;
  }
};

const engine = (answers) => {
  WebAssembly.validate = () => true;
  WebAssembly.Module = class {};
  WebAssembly.Instance = class {
    exports = { '': () => answers.shift() };
  };
};

const choices = { here: choice() };
for (const [name, answers] of Object.entries({ keepsNan: [1], losesNan: [0, 1], scalar: [0, 0] })) {
  engine(answers);
  choices[name] = choice();
}
console.log(JSON.stringify(choices));
