// The crate's cases of special values, with what is right, as a script of the application's folder.

import { join } from 'node:path';
import { cargo } from './native.mjs';

export function writeSpecialCases(folder) {
  cargo('test', ['--test', 'special'], { RELAMPAGO_SPECIAL_CASES: join(folder, 'special-cases.js') });
}
