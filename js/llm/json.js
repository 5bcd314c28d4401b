// JSON for modules: halves of characters, which JSON has as escapes, are no text there.

/**
 * Returns a value as JSON, with U+FFFD in place of halves of characters.
 * @param {any} value
 */
export const jsonOf = (value) =>
    JSON.stringify(value).replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (part) => (part[1] === 'u' ? '\ufffd' : part));
