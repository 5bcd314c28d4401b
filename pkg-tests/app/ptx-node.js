import * as ptx from 'relampago/ptx';
import { runPtx } from './ptx.js';

console.log(JSON.stringify(await runPtx(ptx)));
