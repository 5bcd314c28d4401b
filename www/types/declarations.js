// The files that declare the types of the package and of the platform.

import ts from '../typescript/typescript.js';
import { responseAt } from '../entry.js';

const TYPESCRIPT = new URL('../typescript/', import.meta.url);
const PACKAGE = new URL('../relampago/', import.meta.url);
/** The paths under which TypeScript finds the files. */
export const LIBRARIES = '/typescript/';
export const ENTRIES = '/relampago/';
const FIRST = [`${LIBRARIES}lib.esnext.d.ts`, `${LIBRARIES}lib.dom.d.ts`, ...['', 'numeric/', 'train/', 'llm/', 'ptx/'].map((entry) => `${ENTRIES}${entry}index.d.ts`)];

/** Returns the texts of all declaring files by their paths: of the first ones, and of those that they refer to. */
export async function declarations() {
  const files = new Map();
  const add = async (path) => {
    if (files.has(path)) {
      return;
    }
    files.set(path, '');
    const text = await textAt(path);
    files.set(path, text);
    await Promise.all(referredTo(path, text).map(add));
  };
  await Promise.all(FIRST.map(add));
  return files;
}

async function textAt(path) {
  const [folder, base] = path.startsWith(LIBRARIES) ? [LIBRARIES, TYPESCRIPT] : [ENTRIES, PACKAGE];
  const response = await responseAt(new URL(path.slice(folder.length), base), () => {});
  return response.text();
}

function referredTo(path, text) {
  const { importedFiles, libReferenceDirectives, referencedFiles } = ts.preProcessFile(text);
  const beside = (name) => new URL(name, `file://${path}`).pathname;
  return [
    ...libReferenceDirectives.map(({ fileName }) => `${LIBRARIES}lib.${fileName}.d.ts`),
    ...[...importedFiles, ...referencedFiles].map(({ fileName }) => declarationOf(beside(fileName))),
  ];
}

/** The path of the file that declares a script. */
export const declarationOf = (path) => path.replace(/(\.d\.ts|\.js)?$/, '.d.ts');
