import * as relampago from 'relampago';
import { run } from './app.js';

console.log(JSON.stringify(await run(relampago, process.argv[2])));
