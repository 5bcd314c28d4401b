// A case of devices in workers, in a host that has workers but no pages.

import * as relampago from 'relampago';
import * as cases from './workers-cases.js';

const [what, backend] = process.argv.slice(2);
console.log(JSON.stringify(await cases[what](relampago, backend)));
