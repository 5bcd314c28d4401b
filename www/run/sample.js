// Rules of the JavaScript samples in the guides, which the pages and the package's tests share.

/** The entries of the package that a sample may import. */
const IMPORT = /(\bfrom\s*|\bimport\s*\(?\s*)(['"])relampago(\/\w+)?\2/g;
const FILE_NAME = /^\/\/ (\S+\.\w+)\b[^\n]*\n/;

/** Returns the file that a sample names in its first line. Such a sample belongs to a project; all others run alone. */
export const fileNameOf = (code) => FILE_NAME.exec(code)?.[1];

/** Returns the outputs that a sample states: `console.log(…); // prints: TEXT`. */
export const printsOf = (code) => [...code.matchAll(/\/\/ prints: (.*)$/gm)].map(([, text]) => text);

/** Returns the entries that a sample imports, as paths in the package. */
export const entriesOf = (code) => [...new Set([...code.matchAll(IMPORT)].map(([, , , entry]) => pathOf(entry)))];

/** Returns a sample that imports the package from the folder at the URL `base`. Its lines keep their numbers. */
export const withPackageAt = (code, base) =>
  code.replace(IMPORT, (_, before, quote, entry) => `${before}${quote}${new URL(pathOf(entry), base)}${quote}`);

const pathOf = (entry = '') => `${entry.slice(1)}/index.js`.replace(/^\//, '');
