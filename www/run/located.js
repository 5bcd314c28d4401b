// The line of an error in a script.

/**
 * Returns what an error says, and its line in the script at `url` where the engine names one. Lines of other scripts, such
 * as the package's, are not the sample's.
 */
export function located(error, url) {
  const [, line] = new RegExp(`${RegExp.escape?.(url) ?? url}:(\\d+)`).exec(error?.stack ?? '') ?? [];
  return { message: String(error), line: Number(line ?? lineOfSyntax(error)) || undefined };
}

/** A script that cannot be parsed has no stack. Firefox and WebKit name its line; Chromium does not. */
const lineOfSyntax = (error) => (error instanceof SyntaxError ? error.lineNumber ?? error.line : undefined);
