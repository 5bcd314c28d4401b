// A fresh folder with the packed package installed, as a user's project has it.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

const repository = fileURLToPath(new URL('../../', import.meta.url));
const app = fileURLToPath(new URL('../app/', import.meta.url));

/** `fresh` below the hosts' own npm packages, with the application's scripts. */
export function freshHost(name) {
  const files = readdirSync(app).filter((file) => file.endsWith('.js'));
  return fresh(name, { below: join(repository, 'pkg-tests/hosts/target'), files });
}

/** A program of the hosts' npm packages. */
export const hostProgram = (name) => join(repository, 'pkg-tests/hosts/node_modules/.bin', name);

/** The version that the lock file pins. */
export function hostVersion(name) {
  const manifest = join(repository, 'pkg-tests/hosts/node_modules', name, 'package.json');
  return JSON.parse(readFileSync(manifest, 'utf8')).version;
}

export function fresh(name, { below = join(repository, 'target/pkg-tests'), files } = {}) {
  const folder = join(below, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  // The package depends on nothing; should that change, this fails for want of a network.
  const options = { cwd: folder, stdio: 'pipe', shell: process.platform === 'win32' }; // There npm is a script.
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball()], options);
  const chosen = files ?? readdirSync(app);
  chosen.forEach((file) => cpSync(join(app, file), join(folder, file), { recursive: true }));
  return folder;
}

function tarball() {
  if (process.env.RELAMPAGO_TARBALL) {
    return process.env.RELAMPAGO_TARBALL;
  }
  const folder = join(repository, 'target/npm');
  const found = readdirSync(folder).filter((file) => file.endsWith('.tgz'));
  if (found.length !== 1) {
    throw new Error(`there should be one tarball, not ${found.length}: run \`cargo xtask package\``);
  }
  return join(folder, found[0]);
}
