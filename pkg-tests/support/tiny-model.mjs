// A tiny random model, with what the crate natively answers, from the crate's tests.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

const repository = fileURLToPath(new URL('../../', import.meta.url));

/** Writes `tiny.gguf`. Built with the native tests' options, the test that writes it is compiled already. */
export function writeTinyModel(folder) {
  const test = ['test', '--quiet', '-p', 'relampago', '-p', 'xtask', '--all-features', '--test', 'llm', 'generation'];
  const env = { ...process.env, RELAMPAGO_TINY_MODEL: folder };
  execFileSync('cargo', test, { cwd: repository, env, stdio: 'pipe' });
  return JSON.parse(readFileSync(join(folder, 'tiny.json'), 'utf8'));
}
