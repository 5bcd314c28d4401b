// The crate's cases of special values, with what is right, as a script of the application's folder.

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

const repository = fileURLToPath(new URL('../../', import.meta.url));

/** Built with the native tests' options, the test that writes them is compiled already. */
export function writeSpecialCases(folder) {
  const test = ['test', '--quiet', '-p', 'relampago', '-p', 'xtask', '--all-features', '--test', 'special'];
  const env = { ...process.env, RELAMPAGO_SPECIAL_CASES: join(folder, 'special-cases.js') };
  execFileSync('cargo', test, { cwd: repository, env, stdio: 'pipe' });
}
