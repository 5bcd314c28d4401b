import * as relampago from 'relampago/full';
import { runFull } from './full.js';

console.log(JSON.stringify(await runFull(relampago, process.argv[2])));
