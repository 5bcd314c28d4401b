// A site without a bundler: a page that imports the package's scripts from beside it.

import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Makes a site of the page `NAME.html` with the entry for language models, and of other files. */
export function unbundled(folder, name, files) {
  const site = join(folder, 'plain');
  rmSync(site, { recursive: true, force: true });
  mkdirSync(site);
  cpSync(join(folder, 'node_modules/relampago'), join(site, 'relampago'), { recursive: true });
  for (const file of [`${name}.html`, ...files]) {
    cpSync(join(folder, file), join(site, file));
  }
  const page = readFileSync(join(folder, `${name}-page.js`), 'utf8');
  writeFileSync(join(site, `${name}-page.js`), page.replace("'relampago/llm'", "'./relampago/llm/index.js'"));
  return site;
}
