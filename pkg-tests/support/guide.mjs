// The files that a section of a guide shows, so that the tests run what readers copy.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const guide = (name) => fileURLToPath(new URL(`../../docs/guide/${name}.md`, import.meta.url));
/** The first line of a block names its file, in a comment: `// app/page.jsx`. */
const BLOCK = /^```\w+\n(?:\/\/|<!--|#) (\S+\.\w+)[^\n]*\n[^]*?^```$/gm;

/** File → text, of the section with this title. */
export function samples(title, name = 'bundlers-and-hosts') {
  const text = readFileSync(guide(name), 'utf8');
  const section = text.split(/^## /m).find((part) => part.startsWith(`${title}\n`));
  if (section === undefined) {
    throw new Error(`the guide has no section "${title}"`);
  }
  const blocks = [...section.matchAll(BLOCK)];
  if (blocks.length !== section.match(/^```\w+\n/gm)?.length) {
    throw new Error(`each sample of "${title}" must name its file in its first line`);
  }
  return new Map(blocks.map(([block, file]) => [file, block.split('\n').slice(1, -1).join('\n') + '\n']));
}

/** Writes the samples of a section into `folder`. */
export function writeSamples(title, folder, name) {
  for (const [file, text] of samples(title, name)) {
    const path = join(folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}
