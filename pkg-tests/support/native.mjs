// Programs of the crate that tests of the package run.

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const repository = fileURLToPath(new URL('../../', import.meta.url));

/** The packages and features of the native tests: with others cargo would compile the crate and its dependencies anew. */
const TESTED = (process.env.RELAMPAGO_TESTED ?? '-p relampago --all-features').split(' ');

/** Runs cargo on what the native tests have compiled. */
export function cargo(command, what, env = {}) {
  const options = { cwd: repository, env: { ...process.env, ...env }, stdio: 'pipe' };
  execFileSync('cargo', [command, '--quiet', ...TESTED, ...what], options);
}
