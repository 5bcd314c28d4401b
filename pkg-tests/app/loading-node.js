// What goes wrong before the module is there, and that it may be loaded all the same afterwards.

import * as relampago from 'relampago';
import { codeOf } from './app.js';

const { default: init, GpuDevice } = relampago;
const code = (action) => codeOf(relampago, action);

const codes = {
  tooEarly: await code(() => GpuDevice.create()),
  nothingThere: await code(() => init('http://127.0.0.1:9/relampago.wasm')),
  noModule: await code(() => init(new Uint8Array(10))),
  noSource: await code(() => init(5)),
  loaded: await code(() => init()),
  created: await code(() => GpuDevice.create()),
};
console.log(JSON.stringify(codes));
