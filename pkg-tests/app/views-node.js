import * as relampago from 'relampago';
import { runViews } from './views.js';

console.log(JSON.stringify(await runViews(relampago, process.argv[2])));
