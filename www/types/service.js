// TypeScript's language service for one module in JavaScript.

import ts from '../typescript/typescript.js';
import { ENTRIES, LIBRARIES, declarationOf } from './declarations.js';

const MODULE = '/code.js';
const OPTIONS = {
  allowJs: true,
  checkJs: true,
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  target: ts.ScriptTarget.ESNext,
  module: ts.ModuleKind.ESNext,
  moduleDetection: ts.ModuleDetectionKind.Force,
  lib: ['lib.esnext.d.ts', 'lib.dom.d.ts'],
  types: [],
};

/** Returns a function from code to its errors, which finds declarations in `files`. */
export function serviceOf(files) {
  let code = '';
  let version = 0;
  const read = (path) => (path === MODULE ? code : files.get(path));
  const service = ts.createLanguageService({
    getCompilationSettings: () => OPTIONS,
    getScriptFileNames: () => [MODULE],
    getScriptVersion: (path) => (path === MODULE ? String(version) : '0'),
    getScriptSnapshot: (path) => (read(path) === undefined ? undefined : ts.ScriptSnapshot.fromString(read(path))),
    getCurrentDirectory: () => '/',
    getDefaultLibFileName: () => `${LIBRARIES}lib.esnext.d.ts`,
    fileExists: (path) => read(path) !== undefined,
    readFile: read,
    resolveModuleNameLiterals: (names, from) => names.map(({ text }) => ({ resolvedModule: resolved(text, from, files) })),
  });
  return (next) => {
    code = next;
    version++;
    const ofSyntax = service.getSyntacticDiagnostics(MODULE).map((error) => ({ ...described(error), isSyntax: true }));
    const ofTypes = service.getSemanticDiagnostics(MODULE).map(described);
    return [...ofSyntax, ...ofTypes].sort((a, b) => a.line - b.line);
  };
}

/** Returns where a module's declarations are: relative to a file that imports it, or an entry of the package. */
function resolved(name, from, files) {
  const entry = /^relampago(\/.+)?$/.exec(name);
  const path = entry ? `${ENTRIES}${entry[1] ? `${entry[1].slice(1)}/` : ''}index.d.ts` : declarationOf(new URL(name, `file://${from}`).pathname);
  return files.has(path) ? { resolvedFileName: path, extension: ts.Extension.Dts } : undefined;
}

function described({ file, start = 0, messageText }) {
  const { line } = file ? file.getLineAndCharacterOfPosition(start) : { line: 0 };
  return { line: line + 1, message: ts.flattenDiagnosticMessageText(messageText, ' ') };
}
